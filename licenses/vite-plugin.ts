/** Writes `THIRD-PARTY-NOTICES.txt` beside the built page: the licenses of all that page, workers and command are bundled of. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vite';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
export const NOTICES = 'THIRD-PARTY-NOTICES.txt';

interface Locked {
  dev?: boolean;
  devOptional?: boolean;
  optional?: boolean;
}

export interface ShippedPackage {
  /** Folder below the project's. */
  path: string;
  name: string;
  version: string;
  license?: string;
  author?: string | { name?: string };
}

const read = (path: string) => JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as Record<string, unknown>;

/** Every runtime package, those that others bring included; and the compiler whose library is in the kernels. */
export function shippedPackages(): ShippedPackage[] {
  const locked = Object.entries(read('package-lock.json').packages as Record<string, Locked>);
  return locked
    .filter(([path, { dev, devOptional, optional }]) => path !== '' && !dev && !devOptional && !optional)
    .map(([path]) => path)
    .concat('node_modules/assemblyscript')
    .map((path) => ({ path, ...(read(`${path}/package.json`) as Omit<ShippedPackage, 'path'>) }));
}

/** The text of a package's license and notice files; of the MIT license, where a package states it and has no file. */
function textOf({ path, license, author }: ShippedPackage): string {
  const folder = join(ROOT, path);
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|notice|copying)([.-].*)?$/i.test(file));
  if (files.length === 0 && license === 'MIT') {
    const holder = typeof author === 'object' ? author.name : author;
    const terms = readFileSync(join(ROOT, 'LICENSE'), 'utf8').replace(/^[\s\S]*?(?=Permission is)/, '');
    return `Copyright (c) ${holder ?? 'its authors'}\n\n${terms.trim()}`;
  }
  return files
    .sort()
    .map((file) => readFileSync(join(folder, file), 'utf8').trim())
    .join('\n\n');
}

/** The notices of everything that ships. */
export function thirdPartyNotices(): string {
  const notices = shippedPackages()
    .filter(({ path }) => existsSync(join(ROOT, path)))
    .map((one) => `${one.name} ${one.version} (${one.license})\n\n${textOf(one)}`.trim());
  const rule = `\n\n${'-'.repeat(79)}\n\n`;
  return `Amalgam is made with the packages below; each keeps its own license.${rule}${notices.join(rule)}\n`;
}

export function thirdPartyNoticesFile(): Plugin {
  return {
    name: 'amalgam-third-party-notices',
    apply: 'build',
    writeBundle({ dir }) {
      if (dir !== undefined) writeFileSync(join(dir, NOTICES), thirdPartyNotices());
    },
  };
}
