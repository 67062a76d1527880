import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { taskSource } from './task-source';

let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'amalgam-task-'));
  await mkdir(join(folder, 'task'));
  await writeFile(join(folder, 'secret.jsonl'), '{"secret": 1}\n');
  await writeFile(join(folder, 'task/rows.jsonl'), '{"row": 1}\n');
  await symlink(join(folder, 'secret.jsonl'), join(folder, 'task/link.jsonl'));
});
afterAll(() => rm(folder, { recursive: true }));

async function sourceWith(rows: string) {
  await writeFile(join(folder, 'task/task.yaml'), `dataset_kwargs: { data_files: ${rows} }\n`);
  return taskSource('task/task.yaml', folder);
}

test('a task brings the rows beside it', async () => {
  expect(await sourceWith('rows.jsonl')).toMatchObject({
    files: [{ name: 'task.yaml' }, { name: 'rows.jsonl', text: '{"row": 1}\n' }],
  });
});

test.each(['../secret.jsonl', 'link.jsonl'])(
  'rows of another folder, %s, are refused by name',
  async (rows) => {
    await expect(sourceWith(rows)).rejects.toMatchObject({
      code: 'TaskInvalid',
      message: `The task task/task.yaml cannot be used: its rows “${rows}” are not in its folder.`,
    });
  },
);

test('rows by an absolute path elsewhere are refused, and missing ones named', async () => {
  await expect(sourceWith(join(folder, 'secret.jsonl'))).rejects.toMatchObject({ code: 'TaskInvalid' });
  await expect(sourceWith('nothing.jsonl')).rejects.toThrow('nothing.jsonl');
});
