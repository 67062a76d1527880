/** Every kind of adapter that can be merged beside LoRA: what these files export. */
import type { AdapterKind } from './kind';
import * as orthogonal from './orthogonal';
import * as products from './products';
import * as rows from './rows';
import * as shared from './shared';
import * as sparse from './sparse';
import * as whole from './whole';

export const adapterKinds: readonly AdapterKind[] = [
  products,
  rows,
  orthogonal,
  sparse,
  shared,
  whole,
].flatMap((kinds) => Object.values<AdapterKind>(kinds));

const byType: ReadonlyMap<string, AdapterKind> = new Map(adapterKinds.map((kind) => [kind.type, kind]));

/** The kind of a `peft_type`, or undefined for LoRA, for one without factors, and for one that is not known. */
export function kindOf(type: string): AdapterKind | undefined {
  return byType.get(type);
}
