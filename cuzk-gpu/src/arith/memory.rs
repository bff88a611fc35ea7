//! Large buffers on huge pages.
//!
//! Tables are read at random, a cache line here and there: with 4 KiB pages nearly every read also misses the address
//! translation, and prefetches wait for it.

use core::mem::MaybeUninit;

/// An empty vector with room for `n` elements, for which the system is asked to use huge pages.
pub(crate) fn huge_vec<T>(n: usize) -> Vec<T> {
    let vec = Vec::with_capacity(n);
    advise_huge_pages(vec.as_ptr(), n);
    vec
}

/// `n` times the same element, on huge pages.
pub(crate) fn huge_filled<T: Clone>(n: usize, element: T) -> Vec<T> {
    let mut vec = huge_vec(n);
    vec.resize(n, element);
    vec
}

/// A copy on huge pages.
pub(crate) fn huge_copy<T: Copy>(elements: &[T]) -> Vec<T> {
    let mut vec = huge_vec(elements.len());
    vec.extend_from_slice(elements);
    vec
}

/// Replaces the contents of a vector by `n` elements whose bytes `fill` writes. The memory is kept if it suffices, and on
/// huge pages if not. After an error the vector is empty.
///
/// # Safety
/// If `fill` succeeds, it has written every byte, and they make elements.
pub(crate) unsafe fn refill<T, E>(
    vec: &mut Vec<T>,
    n: usize,
    fill: impl FnOnce(&mut [MaybeUninit<u8>]) -> Result<(), E>,
) -> Result<(), E> {
    vec.clear();
    if vec.capacity() < n {
        // Not grown in place: what is there need not be copied.
        *vec = Vec::new();
        *vec = huge_vec(n);
    }
    let places = &mut vec.spare_capacity_mut()[..n];
    // SAFETY: the same memory; nothing is demanded of it.
    fill(unsafe { core::slice::from_raw_parts_mut(places.as_mut_ptr().cast(), size_of_val(places)) })?;
    // SAFETY: the caller vouches for every byte.
    unsafe { vec.set_len(n) };
    Ok(())
}

/// Asks for huge pages under `n` elements from `start`, before they are touched. Does nothing for small buffers, or where
/// the system has no huge pages; it is only advice.
fn advise_huge_pages<T>(start: *const T, n: usize) {
    const PAGE: usize = 4096;
    const HUGE: usize = 2 << 20;
    let first = (start as usize).next_multiple_of(PAGE);
    let end = (start as usize + n * size_of::<T>()) / PAGE * PAGE;
    if end.saturating_sub(first) >= HUGE {
        // SAFETY: whole pages inside our own allocation; the advice changes no contents. A refusal is of no consequence.
        unsafe { libc::madvise(first as *mut libc::c_void, end - first, libc::MADV_HUGEPAGE) };
    }
}
