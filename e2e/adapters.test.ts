import { join } from 'node:path';
import { describe, it } from 'vitest';
import { adapterCases, expectPeft } from './adapter-cases';

const root = join(import.meta.dirname, 'fixtures/golden/adapters');

describe('adapters, merged as PEFT 0.21 merges them', () => {
  it.each(adapterCases(root))('%s', (kind) => expectPeft(root, kind));
});
