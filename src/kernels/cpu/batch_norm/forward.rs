//! Forward passes: in one step, in two, and with given statistics.
#![allow(unsafe_code)]

use std::sync::Arc;

use super::formulas::{Formula, Normalize, Plus, Relu};
use super::passes::{Out, map};
use super::plan::Plan;
use crate::error::Result;
use crate::kernels::cpu::access::Access;
use crate::kernels::cpu::not_float;
use crate::kernels::cpu::tile::Sum;
use crate::kernels::cpu::wide::Wide;
use crate::kernels::{Kernel, Width, kernel};
use crate::ops::Meta;

/// The kernel for `io` = x, scale, bias, y, mean, var.
///
/// # Errors
/// [`crate::Error::DType`] for types that are not floats.
pub fn forward(eps: f64, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let plan = Plan::new([io[0], io[0], io[3]], &io[..3], eps, width);
    crate::dispatch!(float io[0].dtype, T => Ok(prepare_forward(plan, Access::of::<T>())),
        else => not_float("batch_norm", io[0]))
}

fn prepare_forward<A: Wide + Sum>(plan: Plan, access: Access<A>) -> Arc<dyn Kernel> {
    kernel(plan.space::<A>().iter().sum(), move |io| {
        let coefficients = plan.measure(access, io, |c, [mean, var, ..]| {
            // SAFETY: outputs 1 and 2 have an element for each channel, contiguously.
            unsafe {
                Out(io.output::<A>(1)).set(c, A::from_f64(mean));
                Out(io.output::<A>(2)).set(c, A::from_f64(var));
            }
        })?;
        // SAFETY: the tensors have the metas that the plan was made for.
        unsafe { map::<A, Normalize>(plan.pass(access, io, 0, 0), coefficients) }
    })
}

/// The kernel for `io` = x, scale, bias, mean, var, factor, term.
///
/// # Errors
/// As [`forward`].
pub fn statistics(eps: f64, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let plan = Plan::new([io[0]; 3], &io[..3], eps, width);
    crate::dispatch!(float io[0].dtype, T => Ok(prepare_statistics(plan, Access::of::<T>())),
        else => not_float("batch_norm", io[0]))
}

fn prepare_statistics<A: Wide + Sum>(plan: Plan, access: Access<A>) -> Arc<dyn Kernel> {
    kernel(plan.space::<A>().iter().sum(), move |io| {
        let keep = |c, values: [f64; 4]| {
            for (o, value) in values.into_iter().enumerate() {
                // SAFETY: the outputs have an element for each channel, contiguously.
                unsafe { Out(io.output::<A>(o)).set(c, A::from_f64(value)) };
            }
        };
        plan.measure(access, io, keep).map(drop)
    })
}

/// The kernel for `io` = x, mean, factor, term, the added tensor if there is one, y.
///
/// # Errors
/// As [`forward`].
pub fn normalize(adds: bool, relu: bool, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let (y, inputs) = (io[io.len() - 1], &io[..io.len() - 1]);
    let plan = Plan::new([io[0], inputs[if adds { 4 } else { 0 }], y], inputs, 0.0, width);
    crate::dispatch!(float io[0].dtype, T => {
        let access = Access::of::<T>();
        Ok(match (adds, relu) {
            (false, false) => prepare_normalize::<_, Normalize>(plan, access),
            (false, true) => prepare_normalize::<_, Relu<Normalize>>(plan, access),
            (true, false) => prepare_normalize::<_, Plus<Normalize>>(plan, access),
            (true, true) => prepare_normalize::<_, Relu<Plus<Normalize>>>(plan, access),
        })
    }, else => not_float("batch_norm", io[0]))
}

fn prepare_normalize<A, F>(plan: Plan, access: Access<A>) -> Arc<dyn Kernel>
where
    A: Wide + Sum,
    F: Formula + Send + Sync + 'static,
{
    kernel(plan.space::<A>().iter().sum(), move |io| {
        let coefficients = plan.coefficients::<A>(io, |c| {
            let [mean, factor, term] = [1, 2, 3].map(|i| plan.parameter::<A>(io, i, c));
            [mean, factor, term, 0.0, 0.0, 0.0]
        })?;
        // SAFETY: the tensors have the metas that the plan was made for.
        unsafe { map::<A, F>(plan.pass(access, io, 0, 4), coefficients) }
    })
}

/// The kernel for `io` = x, scale, bias, mean, var, y.
///
/// # Errors
/// As [`forward`].
pub fn inference(eps: f64, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let plan = Plan::new([io[0], io[0], io[5]], &io[..5], eps, width);
    crate::dispatch!(float io[0].dtype, T => Ok(prepare_inference(plan, Access::of::<T>())),
        else => not_float("batch_norm", io[0]))
}

fn prepare_inference<A: Wide + Sum>(plan: Plan, access: Access<A>) -> Arc<dyn Kernel> {
    kernel(plan.space::<A>().iter().sum(), move |io| {
        let coefficients = plan.coefficients::<A>(io, |c| {
            let [scale, bias, mean, var] = [1, 2, 3, 4].map(|i| plan.parameter::<A>(io, i, c));
            [mean, scale / (var + plan.eps).sqrt(), bias, 0.0, 0.0, 0.0]
        })?;
        // SAFETY: the tensors have the metas that the plan was made for.
        unsafe { map::<A, Normalize>(plan.pass(access, io, 0, 0), coefficients) }
    })
}
