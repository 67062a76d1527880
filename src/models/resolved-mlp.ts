/** Feed-forward parts as a wiring has them. */
import type { Mlp } from './architecture';
import { needNumber } from './config-reader';
import { type BlockContext, linear, resolveActivation, vector } from './resolution-context';
import type { NumberField } from './wiring';

export function resolveMlp(context: BlockContext): Mlp {
  const { config, wiring, prefix, hidden, inner } = context;
  const { mlp } = wiring;
  const gated = !('plain' in mlp);
  const factor = (field: NumberField | undefined) => (field ? needNumber(config, field) : 1);
  const up = linear(context, prefix + mlp.up, hidden, 'fusedGate' in mlp ? 2 * inner : inner, mlp.bias);
  return {
    kind: 'mlp',
    projections:
      'gate' in mlp
        ? [linear(context, prefix + mlp.gate, hidden, inner, mlp.bias, factor(mlp.gateFactor)), up]
        : [up],
    gated,
    activation: resolveActivation(config, mlp.activation),
    inner,
    output: linear(context, prefix + mlp.down, inner, hidden, mlp.bias, factor(mlp.downFactor)),
    ...sparsity(mlp.sparse?.(config, context.index)),
    ...(mlp.xielu !== undefined && { xielu: xieluVectors(prefix + mlp.xielu) }),
  };
}

/** The parameters of xIELU as ApertusMLP stores them. */
function xieluVectors(module: string): NonNullable<Mlp['xielu']> {
  return [
    vector(`${module}.alpha_p`, 1),
    vector(`${module}.alpha_n`, 1),
    vector(`${module}.beta`),
    vector(`${module}.eps`),
  ];
}

function sparsity(share: number | undefined): Pick<Mlp, 'sparse'> {
  return share === undefined || share <= 0 ? {} : { sparse: share };
}
