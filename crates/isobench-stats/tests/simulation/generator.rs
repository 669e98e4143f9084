//! Random numbers for the simulations: always the same ones.
//!
//! Not here: what is estimated from them.

/// `SplitMix64`, and what is made from it.
pub struct Generator(u64);

impl Generator {
    pub fn new(seed: u64) -> Self {
        Generator(seed)
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Standard normal: the Box-Muller transform.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// A Poisson count; from a mean of 20 on a rounded normal one.
    pub fn poisson(&mut self, mean: f64) -> f64 {
        if mean >= 20.0 {
            return (mean + mean.sqrt() * self.normal()).round().max(0.0);
        }
        let limit = (-mean).exp();
        let (mut count, mut product) = (0.0, self.uniform());
        while product > limit {
            count += 1.0;
            product *= self.uniform();
        }
        count
    }

    /// AR(1) with mean 0 and standard deviation 1, stationary from its first value on; neighbours
    /// correlate by `phi`.
    pub fn ar1(&mut self, n: usize, phi: f64) -> Vec<f64> {
        let mut value = self.normal();
        (0..n)
            .map(|_| {
                let next = phi * value + (1.0 - phi * phi).sqrt() * self.normal();
                std::mem::replace(&mut value, next)
            })
            .collect()
    }

    /// Commits per bin: Poisson counts with this mean, whose rate swings by `swing` of it as AR(1)
    /// with `phi`.
    pub fn counts(&mut self, n: usize, mean: f64, swing: f64, phi: f64) -> Vec<f64> {
        let rates = self.ar1(n, phi);
        rates.into_iter().map(|rate| self.poisson((mean * (1.0 + swing * rate)).max(0.0))).collect()
    }
}
