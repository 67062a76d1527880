/** Merges in the studio from folders that a user picked to a folder that a user picked, all of them on the disk. */
import { mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Browser, Page } from 'puppeteer-core';
import type { BackendKind } from '../../src/reports/backend';
import type { LocalFile } from '../../src/reports/models';
import type { BuiltStudio } from '../built-studio';
import { type Case, type Folders, inShards, namesOf, recipeOf, weightFiles } from './cases';
import { diskFloor, PIECE_BYTES } from './disk-floor';
import type { Row } from './rows';
import { openStudio, watched } from './studio';

interface Given {
  files: LocalFile[];
  output: FileSystemDirectoryHandle;
}

declare global {
  interface Window {
    /** Folders dropped on the page. */
    given?: Promise<Given>;
  }
}

const OUTPUT = 'merged';

/**
 * Drops folders of the disk on the page, as from a file manager: their files, and the handle of the last one. Native pickers
 * cannot be driven; what they give is of the same kind.
 */
async function giveFolders(page: Page, folders: readonly string[], output: string): Promise<void> {
  await page.evaluate(() => {
    window.given = new Promise((resolve, reject) => {
      addEventListener('dragover', (event) => event.preventDefault());
      addEventListener('drop', async (event) => {
        event.preventDefault();
        try {
          const items = [...event.dataTransfer!.items] as (DataTransferItem & {
            getAsFileSystemHandle(): Promise<FileSystemDirectoryHandle>;
          })[];
          // before the first wait: items are gone after the event
          const handles = await Promise.all(items.map((item) => item.getAsFileSystemHandle()));
          const target = handles.pop()!;
          const files: { path: string; file: File }[] = [];
          for (const folder of handles) {
            for await (const handle of folder.values()) {
              if (handle instanceof FileSystemFileHandle)
                files.push({ path: `${folder.name}/${handle.name}`, file: await handle.getFile() });
            }
          }
          resolve({ files, output: target });
        } catch (thrown) {
          reject(thrown);
        }
      });
    });
  });
  const session = await page.createCDPSession();
  const data = { items: [], files: [...folders, output], dragOperationsMask: 1 };
  for (const type of ['dragEnter', 'dragOver', 'drop'] as const)
    await session.send('Input.dispatchDragEvent', { type, x: 10, y: 10, data });
}

/** Seconds in which the page reads the weights and writes as many bytes to the folder as a plain copy. */
function copyInPage(page: Page, bytes: number): Promise<number> {
  return page.evaluate(
    async (total, pieceBytes) => {
      const { files, output } = await window.given!;
      const piece = new Uint8Array(pieceBytes);
      const begin = performance.now();
      for (const { path, file } of files) {
        if (!path.endsWith('.safetensors')) continue;
        for (let at = 0; at < file.size; at += pieceBytes)
          await file.slice(at, at + pieceBytes).arrayBuffer();
      }
      const copy = await (await output.getFileHandle('copy', { create: true })).createWritable();
      for (let at = 0; at < total; at += pieceBytes)
        await copy.write(piece.subarray(0, Math.min(pieceBytes, total - at)));
      await copy.close();
      return (performance.now() - begin) / 1000;
    },
    bytes,
    PIECE_BYTES,
  );
}

/** One merge, in shards. @param scratch takes the output for as long as it is measured */
export async function mergeFromFolder(
  browser: Browser,
  studio: BuiltStudio,
  c: Case,
  engine: BackendKind,
  folders: Folders,
  scratch: string,
): Promise<Row> {
  const output = join(scratch, 'picked');
  rmSync(output, { recursive: true, force: true });
  mkdirSync(output);
  const { page, calls } = await openStudio(browser, studio);
  try {
    const weights = weightFiles(c, folders);
    await giveFolders(page, [...new Set(weights.map((file) => dirname(file)))], output);
    await page.evaluate(async () => window.amalgamCalls!.openLocal((await window.given!).files));
    const recipe = inShards(recipeOf(c, namesOf(folders)));
    await calls.plan(recipe);
    const { result: report, ...spent } = await watched(() =>
      page.evaluate(
        async (asked, name) => {
          const destination = { kind: 'folder' as const, handle: (await window.given!).output, name };
          return window.amalgamCalls!.merge({ ...asked, destination }, () => undefined);
        },
        { recipe, engine },
        OUTPUT,
      ),
    );
    rmSync(join(output, OUTPUT), { recursive: true });
    const bytes = report.shards.reduce((sum, shard) => sum + shard.bytes, 0);
    const floor = diskFloor(weights, bytes, join(scratch, 'floor'));
    return {
      name: c.name,
      way: 'folder',
      engine: `${engine} (${report.adapter})`,
      seconds: report.seconds,
      floor: { what: 'bytes', seconds: floor.seconds },
      bounds: [{ what: 'the browser’s own copy', seconds: await copyInPage(page, bytes) }],
      stages: report.stages,
      output: report.shards.map(({ hash }) => hash).join(' '),
      bytes: floor.read + floor.written,
      ...spent,
    };
  } finally {
    await page.close();
    rmSync(output, { recursive: true, force: true });
  }
}
