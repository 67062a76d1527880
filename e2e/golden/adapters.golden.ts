/** Adapters of every kind PEFT makes, merged into their bases, against merge_and_unload. */
import { join } from 'node:path';
import { describe, it } from 'vitest';
import { adapterCases, expectPeft } from '../adapter-cases';
import { reference } from './reference';

const root = join(reference, 'golden/adapters');

describe('adapters, merged as PEFT 0.21 merges them', () => {
  it.each(adapterCases(root))('%s', (kind) => expectPeft(root, kind));
});
