/** Place of a tensor in a model of images or video: its block, as those who set weights by block count them. */
import { imageTensorPath } from '../formats/image-checkpoint';
import { originalPath } from '../formats/image-lora';
import { type TensorRole, tensorRole } from './tensor-role';

/** Where blocks are counted: what is counted, the number, and the module within it; one of each row matches. */
const BLOCKS: readonly [path: RegExp, stack: string][] = [
  // three numbers a level, the layer and what is behind it in one block
  [/^unet\.input_blocks\.(\d+)\.(?:\d+\.)?(.+)$/, 'input'],
  [/^unet\.middle_block\.(\d+)\.(.+)$/, 'middle'],
  [/^unet\.output_blocks\.(\d+)\.(?:\d+\.)?(.+)$/, 'output'],
  [/^transformer\.double_blocks\.(\d+)\.(.+)$/, 'double'],
  [/^transformer\.single_blocks\.(\d+)\.(.+)$/, 'single'],
  [/^transformer\.single_transformer_blocks\.(\d+)\.(.+)$/, 'single'],
  [/^transformer\.(?:transformer_blocks|layers|blocks)\.(\d+)\.(.+)$/, 'block'],
  [/^transformer\.noise_refiner\.(\d+)\.(.+)$/, 'noise refiner'],
  [/^transformer\.context_refiner\.(\d+)\.(.+)$/, 'context refiner'],
  [/^text_encoder\.(?:.*\.)?(?:layers|resblocks|block)\.(\d+)\.(.+)$/, 'text encoder'],
  [/^text_encoder_[23]\.(?:.*\.)?(?:layers|resblocks|block)\.(\d+)\.(.+)$/, 'second text encoder'],
];

/** The role of a tensor of an image model; `path` is that of its module where its name is no tensor's of a checkpoint. */
export function imageRole(
  name: string,
  shape: readonly number[],
  path: string = imageTensorPath(name),
): TensorRole {
  const counted = path.startsWith('unet.') ? `unet.${originalPath(path.slice(5))}` : path;
  const { kind } = tensorRole(name, shape);
  for (const [of, stack] of BLOCKS) {
    const [, number, module] = of.exec(counted) ?? [];
    if (module !== undefined) return { stack, layer: Number(number), module, kind };
  }
  return { layer: null, module: counted.slice(counted.indexOf('.') + 1), kind };
}
