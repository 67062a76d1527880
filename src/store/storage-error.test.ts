import { expect, test, vi } from 'vitest';
import { watchStorage } from '../worker/client';
import { destinationError } from '../write/destination-error';
import { fakeStorage } from './opfs.test.fake';
import { storageError } from './opfs-file';

test.each([
  ['R37: the storage was cleared while it was used', 'NotFoundError', 'StorageFailed', /cleared/],
  ['R37: a handle of another tab', 'NoModificationAllowedError', 'Busy', /in use/],
  ['R35: the quota is reached', 'QuotaExceededError', 'StorageFull', /no room/],
  ['anything else keeps its name', 'UnknownError', 'StorageFailed', /UnknownError/],
])('%s', (_, name, code, message) => {
  const error = storageError(new DOMException('x', name), 'the blob');
  expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
  expect(error.hint).not.toBe('');
});

test.each([
  ['ENOSPC', /Free disk space/],
  ['EDQUOT', /Free disk space/],
  ['EACCES', /may write/],
  ['EPERM', /may write/],
  ['EROFS', /may write/],
  ['EEXIST', /place of a folder/],
  ['ENOTDIR', /place of a folder/],
  ['ENOENT', /was moved/],
  ['ENAMETOOLONG', /shorter name/],
  ['EFBIG', /ulimit/],
  ['EIO', /disk fails/],
  ['EOTHER', /free space and the folder’s permissions/],
])('R46: %s of the system has its own words and next step', (code, words) => {
  const thrown = Object.assign(new Error(`${code}: x`), { code });
  const { message, hint } = destinationError(thrown, 'model.safetensors');
  expect(`${message} ${hint}`).toMatch(words);
});

test.each([
  [
    'R46: permission to the folder was taken back',
    'NotAllowedError',
    'DestinationFailed',
    /no longer allows/,
  ],
  ['R46: the folder was deleted', 'NotFoundError', 'DestinationFailed', /moved or deleted/],
  ['R46: the disk is full', 'QuotaExceededError', 'StorageFull', /no space/],
  ['R46: the check at closing refused it', 'AbortError', 'DestinationFailed', /download check/],
])('%s', (_, name, code, message) => {
  const error = destinationError(new DOMException('x', name), 'model.safetensors');
  expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
  expect(error.hint).not.toBe('');
});

test('R37: storage that is cleared while a job runs is noticed once; an ended watch says nothing', async () => {
  vi.useFakeTimers();
  try {
    const storage = fakeStorage();
    vi.stubGlobal('navigator', storage.navigator);
    const cleared = vi.fn();
    const ended = vi.fn();
    watchStorage(cleared);
    const end = watchStorage(ended);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(cleared).not.toHaveBeenCalled();
    end();
    storage.root.entries.clear();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(cleared).toHaveBeenCalledOnce();
    expect(ended).not.toHaveBeenCalled();
  } finally {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  }
});

test('R36: without storage there is nothing to watch', async () => {
  vi.stubGlobal('navigator', {});
  expect(() => watchStorage(() => {})()).not.toThrow();
  vi.unstubAllGlobals();
});
