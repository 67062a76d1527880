/**
 * Checks against reference material that is not in the repository: `npm run check:golden -- FOLDER`, the folder
 * holding `golden/` and `data/`. Fails when it is missing.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import process from 'node:process';

const folder = process.argv[2] && resolve(process.argv[2]);
const needed = ['golden/real/expected.json', 'golden/mergekit/README.md', 'data/README.md'];
const missing = folder ? needed.filter((file) => !existsSync(join(folder, file))) : needed;
if (!folder || missing.length > 0) {
  console.error(
    folder
      ? `${folder} lacks ${missing.join(', ')}.`
      : 'Usage: npm run check:golden -- FOLDER (the folder that holds golden/ and data/)',
  );
  process.exit(1);
}
const args = ['vitest', 'run', '--config', 'e2e/golden/vitest.golden.config.ts', ...process.argv.slice(3)];
const { status } = spawnSync('npx', args, {
  stdio: 'inherit',
  env: { ...process.env, AMALGAM_GOLDEN: folder },
});
process.exit(status ?? 1);
