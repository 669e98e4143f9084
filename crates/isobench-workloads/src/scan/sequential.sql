SELECT count(val) FROM scanned;
