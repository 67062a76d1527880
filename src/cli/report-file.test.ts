import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checkReportPlace, writeWhole } from './report-file';

test('R61: a report takes a new name only, and is whole under it', async () => {
  const root = await mkdtemp(join(tmpdir(), 'amalgam-report-'));
  try {
    const file = join(root, 'report.json');
    await checkReportPlace(file);
    await writeWhole(file, '{}');
    expect(await readdir(root)).toEqual(['report.json']);
    await expect(checkReportPlace(file)).rejects.toMatchObject({
      code: 'Usage',
      message: expect.stringContaining('already exists'),
      hint: expect.stringContaining('--report'),
    });
    await expect(checkReportPlace(file, 'out')).rejects.toMatchObject({
      hint: expect.stringContaining('--out'),
    });
    await writeFile(join(root, 'other'), '');
    await expect(checkReportPlace(join(root, 'other', 'x.json'))).rejects.toMatchObject({ code: 'Usage' });
  } finally {
    await rm(root, { recursive: true });
  }
});
