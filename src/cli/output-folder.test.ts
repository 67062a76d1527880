import {
  type FileHandle,
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ownNote, startOf } from '../host/node/locks';
import { openFile } from '../host/node/storage';
import { beginOutputFolder, type OutputFolder } from './output-folder';
import { claimPartial } from './partial-output';

let root: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'amalgam-output-'));
});

afterEach(() => rm(root, { recursive: true }));

const bytes = (text: string) => new TextEncoder().encode(text);

/** Writes on after the first `offset` bytes of a file. */
async function append(output: OutputFolder, path: string, offset: number, text: string): Promise<void> {
  const file = openFile(await output.begin(path, offset));
  file.write(bytes(text), { at: offset });
  file.close();
}

describe('beginOutputFolder', () => {
  test('R49: of two that finish at once one has the name, and the other is told that it is taken', async () => {
    for (let round = 0; round < 20; round++) {
      const out = join(root, `${round}`);
      const both = await Promise.all([1, 2].map(() => beginOutputFolder(out)));
      for (const output of both) await append(output, 'config.json', 0, '{}');
      const ends = await Promise.allSettled(both.map((o) => o.commit([{ path: 'config.json', size: 2 }])));
      const refused = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as Error] : []));
      expect(refused.map(({ message }) => message)).toEqual([expect.stringContaining('already exists')]);
      expect(await readdir(out)).toEqual(['config.json']);
    }
  });

  test('the folder takes its name on commit, whole', async () => {
    const out = join(root, 'a', 'b', 'merged');
    const output = await beginOutputFolder(out);
    await append(output, 'model.safetensors', 0, 'other bytes');
    await append(output, 'model.safetensors', 0, 'header ');
    await append(output, 'model.safetensors', 7, 'data');
    await append(output, 'sub/config.json', 0, '{}');
    expect(await readdir(join(root, 'a', 'b'))).not.toContain('merged');
    await output.commit([
      { path: 'model.safetensors', size: 11 },
      { path: 'sub/config.json', size: 2 },
    ]);
    await output.discard();
    expect(output.isCommitted).toBe(true);
    expect(await readdir(join(root, 'a', 'b'))).toEqual(['merged']);
    expect(await readFile(join(out, 'model.safetensors'), 'utf8')).toBe('header data');
    expect(await readFile(join(out, 'sub', 'config.json'), 'utf8')).toBe('{}');
  });

  test('an empty folder is taken, one with something in it and a file are not', async () => {
    await mkdir(join(root, 'empty'));
    await mkdir(join(root, 'full'));
    await writeFile(join(root, 'full', 'thesis.txt'), 'x');
    const output = await beginOutputFolder(join(root, 'empty'));
    await append(output, 'x', 0, '1');
    await output.commit([{ path: 'x', size: 1 }]);
    expect(await readdir(join(root, 'empty'))).toEqual(['x']);
    for (const name of ['full', 'full/thesis.txt']) {
      await expect(beginOutputFolder(join(root, name))).rejects.toMatchObject({
        code: 'DestinationNotEmpty',
      });
    }
    expect((await readdir(root)).sort()).toEqual(['empty', 'full']);
  });

  test('discard leaves nothing, not even the parents it made', async () => {
    await mkdir(join(root, 'kept'));
    const output = await beginOutputFolder(join(root, 'kept', 'new', 'deep', 'merged'));
    await append(output, 'x', 0, '1');
    await output.discard();
    await output.discard();
    expect(await readdir(join(root, 'kept'))).toEqual([]);
  });

  test('R47: discard leaves nothing where a thread that ends still makes files', async () => {
    const output = await beginOutputFolder(join(root, 'merged'));
    await append(output, 'x', 0, '1');
    const [hidden] = await readdir(root);
    let isOver = false;
    const until = Date.now() + 200;
    const making = (async () => {
      for (let i = 0; Date.now() < until && !isOver; i++)
        await writeFile(join(root, hidden!, `${i}`), '').catch(() => {
          isOver = true;
        });
    })();
    await output.discard();
    await making;
    expect(await readdir(root)).toEqual([]);
  });

  test('a wrong offset, a name that leads out and a wrong size at the end are refused', async () => {
    const output = await beginOutputFolder(join(root, 'merged'));
    await append(output, 'x', 0, '12');
    await expect(append(output, 'x', 3, '4')).rejects.toMatchObject({ code: 'DestinationFailed' });
    await expect(append(output, 'y', 1, '4')).rejects.toMatchObject({ code: 'DestinationFailed' });
    for (const path of ['../x', '/x', 'a/../../x', 'C:\\x', '']) {
      await expect(append(output, path, 0, '1')).rejects.toMatchObject({ code: 'UnsafePath' });
    }
    const commits = [
      [{ path: 'x', size: 1 }],
      [],
      [
        { path: 'x', size: 2 },
        { path: 'y', size: 0 },
      ],
    ];
    for (const files of commits) {
      await expect(output.commit(files)).rejects.toMatchObject({ code: 'DestinationFailed' });
    }
    await output.discard();
    expect(await readdir(root)).toEqual([]);
  });

  test('R49: a folder that was filled meanwhile is not touched, and the finished output stays', async () => {
    const output = await beginOutputFolder(join(root, 'merged'));
    await append(output, 'x', 0, '1');
    await mkdir(join(root, 'merged'));
    await writeFile(join(root, 'merged', 'mine'), '');
    const [hidden] = (await readdir(root)).filter((name) => name.startsWith('.merged'));
    await expect(output.commit([{ path: 'x', size: 1 }])).rejects.toMatchObject({
      code: 'DestinationFailed',
      message: expect.stringContaining(`It is in ${join(root, hidden!)}.`),
    });
    await output.discard();
    expect(await readdir(join(root, 'merged'))).toEqual(['mine']);
    expect(await readFile(join(root, hidden!, 'x'), 'utf8')).toBe('1');
  });

  test('R49: an interrupt in the middle of the last step removes nothing', async () => {
    const output = await beginOutputFolder(join(root, 'merged'));
    await append(output, 'x', 0, '1');
    await Promise.all([output.commit([{ path: 'x', size: 1 }]), output.discard()]);
    expect(await readFile(join(root, 'merged', 'x'), 'utf8')).toBe('1');
  });

  test('R49: an empty folder keeps its place, as a mount point must; a link to one stays a link', async () => {
    await mkdir(join(root, 'disk'));
    await symlink('disk', join(root, 'link'));
    const { ino } = await stat(join(root, 'disk'));
    const output = await beginOutputFolder(join(root, 'link'));
    await append(output, 'sub/x', 0, '1');
    await append(output, 'model.safetensors', 0, '2');
    await output.appendJournal(0, bytes('line'));
    expect((await readdir(root)).sort()).toEqual(['disk', 'link']);
    await output.commit([
      { path: 'sub/x', size: 1 },
      { path: 'model.safetensors', size: 1 },
    ]);
    expect((await stat(join(root, 'disk'))).ino).toBe(ino);
    expect((await lstat(join(root, 'link'))).isSymbolicLink()).toBe(true);
    expect((await readdir(join(root, 'disk'), { recursive: true })).sort()).toEqual([
      'model.safetensors',
      'sub',
      'sub/x',
    ]);
    await symlink('nowhere', join(root, 'dangling'));
    await expect(beginOutputFolder(join(root, 'dangling'))).rejects.toMatchObject({
      message: expect.stringContaining('is a broken link'),
    });
  });

  test('R49: cut off while files move into an empty folder, it goes on with --resume and says so without', async () => {
    const out = join(root, 'disk');
    await mkdir(out);
    const first = await beginOutputFolder(out, true);
    await append(first, 'config.json', 0, '{}');
    await append(first, 'model.safetensors', 0, '2');
    await first.appendJournal(0, bytes('line'));
    first.keep();
    await first.discard();
    const [hidden] = await readdir(out);
    // what a kill after the first of two files leaves
    await writeFile(join(out, hidden!, '.amalgam-files.json'), '["config.json","model.safetensors"]');
    await rename(join(out, hidden!, 'config.json'), join(out, 'config.json'));
    await expect(beginOutputFolder(out)).rejects.toMatchObject({
      code: 'DestinationNotEmpty',
      hint: expect.stringContaining('--resume'),
    });
    const again = await beginOutputFolder(out, true);
    expect((await again.find('config.json'))?.size).toBe(2);
    await again.commit([
      { path: 'config.json', size: 2 },
      { path: 'model.safetensors', size: 1 },
    ]);
    expect((await readdir(out)).sort()).toEqual(['config.json', 'model.safetensors']);
  });

  test('R49: a list of moved files that is torn blocks neither --resume nor the message', async () => {
    const out = join(root, 'disk');
    await mkdir(out);
    const first = await beginOutputFolder(out, true);
    await append(first, 'model.safetensors', 0, '2');
    await first.appendJournal(0, bytes('line'));
    first.keep();
    await first.discard();
    const [hidden] = await readdir(out);
    for (const torn of ['', '["model.safe', '{"model.safetensors":1}', '[1]']) {
      await writeFile(join(out, hidden!, '.amalgam-files.json'), torn);
      const again = await beginOutputFolder(out, true);
      expect((await again.find('model.safetensors'))?.size).toBe(1);
      again.keep();
      await again.discard();
    }
    const last = await beginOutputFolder(out, true);
    await last.commit([{ path: 'model.safetensors', size: 1 }]);
    expect(await readdir(out)).toEqual(['model.safetensors']);
  });

  test('a disk without room is found before anything is computed', async () => {
    const output = await beginOutputFolder(join(root, 'merged'));
    await output.checkRoom(1);
    await expect(output.checkRoom(2 ** 60)).rejects.toMatchObject({ code: 'StorageFull' });
    await output.discard();
  });

  // the order of calls is read from /proc, which only Linux has
  test.skipIf(process.platform !== 'linux')(
    'R51: files, then their folders, then the name are made durable, in this order',
    async () => {
      const order: string[] = [];
      const probe = await open(root);
      const prototype = Object.getPrototypeOf(probe) as FileHandle;
      await probe.close();
      const sync = vi.spyOn(prototype, 'sync').mockImplementation(async function (this: FileHandle) {
        order.push(
          (await readlink(`/proc/self/fd/${this.fd}`)).slice(root.length).replace(/[0-9a-f]{8}/, '#'),
        );
      });
      const output = await beginOutputFolder(join(root, 'merged'));
      await append(output, 'sub/x', 0, '1');
      await output.commit([{ path: 'sub/x', size: 1 }]);
      sync.mockRestore();
      expect(order).toEqual(['/.merged.amalgam-#/sub/x', '/.merged.amalgam-#', '/.merged.amalgam-#/sub', '']);
    },
  );

  test('R47: an interrupted output is found again, unless its process still writes it', async () => {
    const out = join(root, 'merged');
    const first = await beginOutputFolder(out, true);
    await append(first, 'a', 0, '123');
    // without a journal there is nothing to go on from
    const other = await beginOutputFolder(out, true);
    expect(await other.find('a')).toBeUndefined();
    await other.discard();

    await first.appendJournal(0, bytes('line'));
    first.keep();
    await first.discard();
    const owner = (await readdir(root)).find((name) => name.startsWith('.merged'))!;
    const file = join(root, owner, '.amalgam-run.pid');
    await writeFile(file, `${process.ppid} ${await startOf(process.ppid)}`);
    await expect(beginOutputFolder(out, true)).rejects.toMatchObject({ code: 'Busy' });
    // R50: the number was given to another process since
    await writeFile(file, `${process.ppid} before`);

    const again = await beginOutputFolder(out, true);
    expect((await again.find('a'))?.size).toBe(3);
    expect((await again.find('journal'))?.size).toBe(4);
    await again.commit([{ path: 'a', size: 3 }]);
    expect(await readdir(root)).toEqual(['merged']);
    expect(await readdir(out)).toEqual(['a']);
  });

  test('R50: a number that another process has now, or one that nobody has, holds no output', async () => {
    for (const owner of [`${process.ppid} before`, '999999999 before', String(process.ppid), 'torn']) {
      const file = join(root, '.amalgam-run.pid');
      await writeFile(file, owner);
      await utimes(file, 1, 1);
      await claimPartial(root);
      expect(await readFile(file, 'utf8')).toMatch(`${process.pid} `);
    }
    expect(await startOf(process.pid)).toBe(await startOf(process.pid));
    expect(await startOf(999_999_999)).toBeUndefined();
  });

  // only Linux numbers processes by container
  test.skipIf(process.platform !== 'linux')(
    'a process of another container with the number of this one holds its output while it touches its note',
    async () => {
      const file = join(root, '.amalgam-run.pid');
      const note = `${process.pid} ${await startOf(process.pid)} pid:[1]`;
      await writeFile(file, note);
      await expect(claimPartial(root)).rejects.toMatchObject({ code: 'Busy' });
      await utimes(file, 1, 1);
      await claimPartial(root);
      expect(await readFile(file, 'utf8')).toBe(await ownNote());
    },
  );

  test('of two that claim the same left folder one gets it', async () => {
    const file = join(root, '.amalgam-run.pid');
    await writeFile(file, '999999999 before');
    const claims = await Promise.allSettled([claimPartial(root), claimPartial(root), claimPartial(root)]);
    expect(claims.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected', 'rejected']);
  });

  test('without --resume a failed merge leaves nothing, and what others left is swept or named with its size', async () => {
    const out = join(root, 'merged');
    const failed = await beginOutputFolder(out);
    await append(failed, 'model.safetensors', 0, '12345');
    await failed.appendJournal(0, bytes('line'));
    failed.keep();
    await failed.discard();
    expect(await readdir(root)).toEqual([]);

    // killed: one that can go on, one before it had a journal
    const left = await beginOutputFolder(out, true);
    await append(left, 'model.safetensors', 0, '12345');
    await left.appendJournal(0, bytes('line'));
    left.keep();
    await left.discard();
    const [hidden] = await readdir(root);
    await mkdir(join(root, '.merged.amalgam-00000000'));
    await writeFile(join(root, '.merged.amalgam-00000000', '.amalgam-run.pid'), '999999999 before');
    const next = await beginOutputFolder(out);
    expect(await readdir(root)).not.toContain('.merged.amalgam-00000000');
    expect((await next.leftBefore()).replace(/\s/g, ' ')).toContain(
      `${join(root, hidden!)} (5 B): go on with --resume`,
    );
    await expect(next.checkRoom(2 ** 60)).rejects.toMatchObject({
      code: 'StorageFull',
      hint: expect.stringContaining(hidden!),
    });
    await append(next, 'x', 0, '1');
    await next.commit([{ path: 'x', size: 1 }]);
    await next.discard();
    expect(await readdir(out)).toEqual(['x']);
    await expect(beginOutputFolder(out)).rejects.toMatchObject({
      code: 'DestinationNotEmpty',
      hint: expect.stringContaining(hidden!),
    });
  });

  test('a file that is changed after it was read back is found before the output gets its name', async () => {
    for (const change of [
      (path: string) => writeFile(path, '54321'),
      (path: string) => rename(path, `${path}.old`).then(() => writeFile(path, '12345')),
      (path: string) => utimes(path, 1, 1),
    ]) {
      const output = await beginOutputFolder(join(root, 'merged'));
      await append(output, 'model.safetensors', 0, '12345');
      const { location } = (await output.find('model.safetensors'))!;
      await change(location);
      const commit = output.commit([{ path: 'model.safetensors', size: 5 }]);
      await expect(commit).rejects.toMatchObject({ code: 'IntegrityError' });
      await output.discard();
    }
    expect(await readdir(root)).toEqual([]);
  });

  test('what belongs to the run is never in a finished output, also where the last step fails', async () => {
    const out = join(root, 'merged');
    const output = await beginOutputFolder(out, true);
    await append(output, 'x', 0, '1');
    await output.appendJournal(0, bytes('line'));
    const probe = await open(root);
    const prototype = Object.getPrototypeOf(probe) as FileHandle;
    await probe.close();
    const sync = vi.spyOn(prototype, 'sync').mockImplementation(async () => {
      if ((await readdir(root)).includes('merged')) throw new Error('no sync here');
    });
    await output.commit([{ path: 'x', size: 1 }]).catch(() => undefined);
    sync.mockRestore();
    expect(await readdir(root)).toEqual(['merged']);
    expect(await readdir(out)).toEqual(['x']);
  });
});
