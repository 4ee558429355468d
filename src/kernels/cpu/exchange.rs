//! Handing tensors to a group of processes, and taking the results.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::comm::{self, Request};
use crate::kernels::{Kernel, kernel};
use crate::ops::Meta;
use crate::ops::exchange::{ExchangeFinish, ExchangeStart};

/// Starts an exchange of the elements of `io`.
pub fn start(op: &ExchangeStart, io: &[&Meta]) -> Arc<dyn Kernel> {
    let (dtype, count) = op.elements(io);
    let (op, sizes) = (op.clone(), sizes(io));
    kernel(0, move |io| {
        // SAFETY: the inputs are contiguous, as inference checked.
        let given = sizes.iter().enumerate().map(|(i, bytes)| unsafe { io.read::<u8>(i, *bytes) });
        let bytes: Vec<&[u8]> = given.collect();
        let request = Request { exchange: op.exchange.clone(), dtype, count, bytes };
        comm::group(op.group)?.begin(op.slot, request)
    })
}

/// Waits for an exchange, whose elements go into `io`.
pub fn finish(op: &ExchangeFinish, io: &[&Meta]) -> Arc<dyn Kernel> {
    let (op, sizes) = (op.clone(), sizes(io));
    kernel(0, move |io| {
        comm::group(op.group)?.finish(op.slot, &op.exchange, op.bytes, |mut bytes| {
            for (i, size) in sizes.iter().enumerate() {
                let (own, rest) = bytes.split_at(*size);
                // SAFETY: the outputs are row-major, as they were inferred.
                unsafe { io.write::<u8>(i, *size) }.copy_from_slice(own);
                bytes = rest;
            }
        })
    })
}

fn sizes(io: &[&Meta]) -> Vec<usize> {
    io.iter().map(|x| x.bytes()).collect()
}
