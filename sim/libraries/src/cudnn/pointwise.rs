//! What a graph does element by element.

use super::attributes::Descriptor;
use super::{Res, not_simulated};

/// A function of one or two elements.
#[derive(Clone, Copy, Debug)]
pub(super) enum Function {
    Add,
    Mul,
    Sub,
    Max,
    Min,
    Identity,
    /// Clips, and the slope below the lower one.
    Relu {
        lower: f64,
        upper: f64,
        slope: f64,
    },
    Tanh,
    Sigmoid,
    Elu(f64),
    Gelu,
}

impl Function {
    /// What a descriptor says, of `CUDNN_BACKEND_POINTWISE_DESCRIPTOR`.
    pub(super) fn of(descriptor: &Descriptor) -> Res<Function> {
        Ok(match descriptor.number(0).unwrap_or(-1) {
            0 => Function::Add,
            1 => Function::Mul,
            2 => Function::Min,
            3 => Function::Max,
            9 => Function::Sub,
            21 => Function::Identity,
            100 => Function::Relu {
                lower: descriptor.real(3).unwrap_or(0.0),
                upper: descriptor.real(4).unwrap_or(f64::INFINITY),
                slope: descriptor.real(5).unwrap_or(0.0),
            },
            101 => Function::Tanh,
            102 => Function::Sigmoid,
            103 => Function::Elu(descriptor.real(6).unwrap_or(1.0)),
            104 => Function::Gelu,
            mode => return Err(not_simulated(&format!("cudnnPointwiseMode_t {mode}"))),
        })
    }

    /// It takes two elements.
    pub(super) fn is_binary(self) -> bool {
        use Function::*;
        matches!(self, Add | Mul | Sub | Max | Min)
    }

    /// Its value.
    pub(super) fn at(self, x: f64, y: f64) -> f64 {
        match self {
            Function::Add => x + y,
            Function::Mul => x * y,
            Function::Sub => x - y,
            Function::Max => x.max(y),
            Function::Min => x.min(y),
            Function::Identity => x,
            Function::Relu { lower, upper, slope } => {
                if x > lower {
                    x.min(upper)
                } else {
                    lower + slope * (x - lower)
                }
            }
            Function::Tanh => x.tanh(),
            Function::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Function::Elu(alpha) => {
                if x > 0.0 {
                    x
                } else {
                    alpha * x.exp_m1()
                }
            }
            Function::Gelu => 0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2)),
        }
    }
}

unsafe extern "C" {
    #[link_name = "erf"]
    safe fn erf(x: f64) -> f64;
}

/// Elements of a tensor of which dimensions of one element stand for all.
pub(super) fn broadcast(values: Vec<f64>, from: &[usize], to: &[usize]) -> Vec<f64> {
    if from == to {
        return values;
    }
    let mut stride = vec![0; from.len()];
    let mut step = 1;
    for axis in (0..from.len()).rev() {
        stride[axis] = if from[axis] == 1 { 0 } else { step };
        step *= from[axis];
    }
    let element = |mut at: usize| {
        let mut index = 0;
        for axis in (0..to.len()).rev() {
            index += at % to[axis] * stride[axis];
            at /= to[axis];
        }
        values[index]
    };
    (0..to.iter().product()).map(element).collect()
}
