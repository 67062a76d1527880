/** Every kind of adapter that can be merged beside LoRA. Adding one is one file and one line here. */
import { adalora } from './adalora';
import { boft } from './boft';
import { c3a } from './c3a';
import { delora } from './delora';
import { fourierft } from './fourierft';
import { gralora } from './gralora';
import { hira } from './hira';
import { hra } from './hra';
import { ia3 } from './ia3';
import type { AdapterKind } from './kind';
import { loha } from './loha';
import { lokr } from './lokr';
import { miss } from './miss';
import { oft } from './oft';
import { randlora } from './randlora';
import { shira, waveft } from './sparse';
import { vblora } from './vblora';
import { pvera, vera } from './vera';

export const adapterKinds: readonly AdapterKind[] = [
  ...[adalora, loha, lokr, ia3, oft, boft, hra, hira, vera, pvera, randlora],
  ...[fourierft, waveft, vblora, c3a, shira, miss, delora, gralora],
];

const byType: ReadonlyMap<string, AdapterKind> = new Map(adapterKinds.map((kind) => [kind.type, kind]));

/** The kind of a `peft_type`, or undefined for LoRA, for one without factors, and for one that is not known. */
export function kindOf(type: string): AdapterKind | undefined {
  return byType.get(type);
}
