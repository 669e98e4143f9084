//! The buffers provided to the kernel for receives.
//!
//! Every buffer is owned either by the kernel or by us, and never by both:
//!
//! - At first, and after [`Buffers::give`] with the next [`Buffers::publish`], it is the kernel's. No
//!   Rust reference to it exists, only raw pointers.
//! - The kernel gives it up with a completion that names it. `Ring` makes exactly one [`Lease`] of
//!   each such completion. A lease can't be copied, and `give` takes it by value.
//! - Bytes are read only through a lease, for as long as the lease is borrowed.
//!
//! The memory is freed only after nothing is outstanding (`Ring::drop`), otherwise it is leaked.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

/// Size of a buffer, bytes. Most replies need one; longer ones take several.
pub(crate) const SIZE: u32 = 4096;

/// The identifier under which the kernel knows the buffers of a ring; there is one group.
pub(crate) const GROUP: u16 = 0;

/// The largest page of any architecture: the list of buffers must start at a page's start.
const PAGE: usize = 65536;

/// A buffer that the kernel has given up, with the number of bytes that it has written. It isn't
/// `Clone`, so that it can be given back only once.
#[derive(Debug)]
pub(crate) struct Lease {
    id: u16,
    len: usize,
}

/// The memory of all buffers, and the list through which they are provided.
pub(crate) struct Buffers {
    /// The list that the kernel takes buffers from, `count` entries. The kernel reads it.
    list: NonNull<BufRingEntry>,
    /// `count` times [`SIZE`] bytes.
    memory: NonNull<u8>,
    /// A power of two, at most 32,768.
    count: u16,
    /// Number of buffers provided so far, wrapping. Those before the published tail are the
    /// kernel's.
    tail: u16,
    /// Not to be freed: the kernel may still use it.
    leaked: bool,
}

#[expect(unsafe_code, reason = "raw pointers aren't Send by themselves")]
// SAFETY: the memory belongs to this value alone, and is used only through it. The kernel writes
// into it only within calls of the thread that made the ring, and refuses those of others, so moving
// it to another thread makes it useless, but shares nothing.
unsafe impl Send for Buffers {}

impl Buffers {
    /// Provides `count` buffers to the kernel; a power of two, at most 32,768.
    ///
    /// # Errors
    /// The kernel refuses, or knows no such lists (before Linux 5.19).
    pub(crate) fn new(ring: &IoUring, count: u16) -> io::Result<Buffers> {
        assert!(count.is_power_of_two(), "the kernel takes powers of two only");
        let mut buffers = Buffers {
            list: allocate(list_layout(count)).cast(),
            memory: allocate(memory_layout(count)),
            count,
            tail: 0,
            leaked: false,
        };
        let list = buffers.list.as_ptr() as u64;
        #[expect(unsafe_code, reason = "the kernel is told an address")]
        // SAFETY: the address is the start of `count` zeroed entries, aligned to a page. They live
        // until `drop`, which the ring calls when no receive is outstanding any more, and which
        // ends the registration first.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(list, count, GROUP, 0)?;
        }
        for id in 0..count {
            buffers.give(Lease { id, len: 0 });
        }
        buffers.publish();
        Ok(buffers)
    }

    /// The lease of a buffer named by a completion with this many bytes. To be called once for each
    /// such completion.
    pub(crate) fn lease(&self, id: u16, len: usize) -> Lease {
        assert!(id < self.count && len <= SIZE as usize, "the kernel names a buffer that it was given");
        Lease { id, len }
    }

    /// The bytes received into a buffer.
    #[inline]
    pub(crate) fn bytes<'a>(&'a self, lease: &'a Lease) -> &'a [u8] {
        #[expect(unsafe_code, reason = "the kernel has written the bytes")]
        // SAFETY: `lease` checked that the buffer is one of ours and the length within it; the
        // memory was zeroed, so all of it is initialised. The kernel has given the buffer up, and
        // gets it back only by `give`, which consumes the lease that this slice borrows.
        unsafe {
            let start = self.memory.add(offset(lease.id));
            std::slice::from_raw_parts(start.as_ptr(), lease.len)
        }
    }

    /// Gives a buffer back, from the next [`Buffers::publish`] on.
    #[inline]
    #[expect(clippy::needless_pass_by_value, reason = "the lease ends here")]
    pub(crate) fn give(&mut self, lease: Lease) {
        let place = usize::from(self.tail & (self.count - 1));
        #[expect(unsafe_code, reason = "an entry of the list that the kernel reads")]
        // SAFETY: `place` is below `count`, so the entry is within the list. The kernel reads only
        // entries before the published tail, and at most `count` buffers are provided at a time
        // (each lease is of one of `count` buffers, and is consumed), so this entry has been read
        // already. Its fields are written one by one because the first entry's remaining field is
        // the tail itself. The address is within `memory`.
        unsafe {
            let entry = self.list.add(place).as_mut();
            entry.set_addr(self.memory.add(offset(lease.id)).as_ptr() as u64);
            entry.set_len(SIZE);
            entry.set_bid(lease.id);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    /// Lets the kernel use all buffers given back so far.
    #[inline]
    pub(crate) fn publish(&mut self) {
        #[expect(unsafe_code, reason = "the tail is shared with the kernel")]
        // SAFETY: the pointer is to the first entry of the list, which is initialised and lives as
        // long as `self`; a `u16` in it is the tail, aligned to two bytes, which the kernel reads
        // atomically. The release order makes the entries visible before it.
        unsafe {
            let tail = BufRingEntry::tail(self.list.as_ptr()).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }

    /// Ends the registration, when nothing is outstanding.
    ///
    /// # Errors
    /// The kernel refuses; the memory must be leaked.
    pub(crate) fn withdraw(ring: &IoUring) -> io::Result<()> {
        ring.submitter().unregister_buf_ring(GROUP)
    }

    /// Keeps the memory for ever.
    pub(crate) fn leak(&mut self) {
        self.leaked = true;
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        if self.leaked {
            return;
        }
        #[expect(unsafe_code, reason = "memory shared with the kernel is freed by hand")]
        // SAFETY: both were allocated with these layouts. The ring drops its buffers only after
        // everything outstanding has ended and the registration with it; otherwise it has leaked
        // them.
        unsafe {
            dealloc(self.list.as_ptr().cast(), list_layout(self.count));
            dealloc(self.memory.as_ptr(), memory_layout(self.count));
        }
    }
}

/// The start of a buffer within the memory.
#[inline]
fn offset(id: u16) -> usize {
    usize::from(id) * SIZE as usize
}

fn list_layout(count: u16) -> Layout {
    layout(usize::from(count) * size_of::<BufRingEntry>())
}

fn memory_layout(count: u16) -> Layout {
    layout(offset(count))
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size.max(1), PAGE).expect("at most 32,768 buffers of one page")
}

fn allocate(layout: Layout) -> NonNull<u8> {
    #[expect(unsafe_code, reason = "memory shared with the kernel is allocated by hand")]
    // SAFETY: the size isn't zero.
    let memory = unsafe { alloc_zeroed(layout) };
    NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout))
}
