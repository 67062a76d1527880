import { expect, it } from 'vitest';
import { adapterKinds } from './index';

it('every kind in this folder is in the index', () => {
  const files = import.meta.glob<Record<string, unknown>>(['./*.ts', '!./*.test.ts'], { eager: true });
  const declared = Object.entries(files).flatMap(([path, file]) =>
    path === './index.ts'
      ? []
      : Object.values(file).filter((value) => Object(value).type && Object(value).parts),
  );
  expect(new Set(declared)).toEqual(new Set(adapterKinds));
});
