/** How the files of a LoRA are called in each convention, as data: one row a convention. */
import { type ImageNaming, imageModule } from './image-lora';
import { ADAPTER_WEIGHTS, type PeftConfigFields, peftConfigText } from './peft-config';

export interface NamedFactor {
  name: string;
  /** Stored as [inputs, rank] and [rank, outputs], not as A [rank, inputs] and B [outputs, rank]. */
  transposed: boolean;
}

export interface LoraNaming {
  /** Name of the file of weights. */
  weights: string;
  /** Whether one rank holds for all modules, so that the others are filled up with zeros. */
  oneRank: boolean;
  factors(module: string, kind: 'linear' | 'embedding'): { a: NamedFactor; b: NamedFactor };
  /** Text of adapter_config.json; factors act unscaled. Absent where the file of weights says everything. */
  config?(fields: PeftConfigFields): string;
}

const PREFIX = 'base_model.model.';

export const LORA_NAMINGS = {
  peft: {
    weights: ADAPTER_WEIGHTS,
    oneRank: false,
    factors(module, kind) {
      const [a, b] =
        kind === 'embedding' ? ['lora_embedding_A', 'lora_embedding_B'] : ['lora_A.weight', 'lora_B.weight'];
      const named = (part: string) => ({ name: `${PREFIX}${module}.${part}`, transposed: false });
      return { a: named(a!), b: named(b!) };
    },
    config: peftConfigText,
  },
  // mlx_lm (tuner/lora.py, tuner/utils.py): y = W·x + scale · (x·a)·b; keys are paths within a layer, or whole ones outside
  mlx: {
    weights: 'adapters.safetensors',
    oneRank: true,
    factors: (module) => ({
      a: { name: `${module}.lora_a`, transposed: true },
      b: { name: `${module}.lora_b`, transposed: true },
    }),
    config({ base, modules }) {
      const rank = modules.reduce((most, m) => Math.max(most, m.rank), 1);
      const keys = [...new Set(modules.map(({ module }) => module.replace(/^.*\blayers\.\d+\./, '')))];
      const config = {
        fine_tune_type: 'lora',
        lora_parameters: { dropout: 0, keys: keys.sort(), rank, scale: 1 },
        model: base,
        num_layers: -1,
      };
      return `${JSON.stringify(config, null, 2)}\n`;
    },
  },
} as const satisfies Record<string, LoraNaming>;

/** File of a LoRA of an image model; without α its factors act unscaled in every tool that reads it. */
export const IMAGE_WEIGHTS = 'lora.safetensors';

/** The row of an image model's LoRA; without one, that of PEFT. */
export function loraNaming(image: ImageNaming | undefined): LoraNaming {
  if (!image) return LORA_NAMINGS.peft;
  const [down, up] = image.convention === 'kohya' ? ['lora_down', 'lora_up'] : ['lora_A', 'lora_B'];
  return {
    weights: IMAGE_WEIGHTS,
    oneRank: false,
    factors(module) {
      const name = imageModule(module, image);
      const named = (part: string) => ({ name: `${name}.${part}.weight`, transposed: false });
      return { a: named(down!), b: named(up!) };
    },
  };
}
