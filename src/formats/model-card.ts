/** The README.md of an output: front matter the Hub reads, and a page that shows foreign names as text only. */
import { DEFAULT_HUB_URL, hubFile, isRepoId, isRevision } from './hub-id';
import type { FamilyLine } from './model-family';
import { displayName } from './names';
import { parseModelRef, type RepoRef } from './recipe';
import { yamlText } from './yaml-text';

export interface ModelCardFields {
  title: string;
  /** The recipe as YAML. */
  recipe: string;
  /** Model references of the recipe: the base, and all that were merged. */
  base?: string;
  models: readonly string[];
  /** Those paths in the references that are ids on the Hub; only they become links. */
  hubIds: ReadonlySet<string>;
  method: { title: string; reference: { label: string; url: string } };
  /** License of every input, where all have the same. */
  license?: string;
  /** Lines of the tree that the models come from, and what their licenses forbid or ask for. */
  licenses?: { family: readonly FamilyLine[]; findings: readonly string[] };
  /** Of the models that were merged. */
  of: 'LoRA adapters' | 'language models' | 'image models';
  /** An adapter for PEFT, or else a model. */
  library: 'transformers' | 'peft' | 'diffusers';
  /** Version of Amalgam. */
  version: string;
}

/** The text of the model card. */
export function modelCard(fields: ModelCardFields): string {
  const { base, method, library } = fields;
  const references = [...(base === undefined ? [] : [base]), ...fields.models];
  const repositories = [...new Set(references.flatMap(repos).map(({ path }) => path))];
  // the Hub validates these names, and takes one of a local folder for a stranger's model
  const onHub = repositories.filter((path) => fields.hubIds.has(path)).map((path) => hubFile(path).repo);
  const bases = [...new Set(onHub)].filter(isRepoId);
  const front = yamlText({
    ...(bases.length > 0 ? { base_model: bases, base_model_relation: 'merge' } : {}),
    library_name: library,
    ...(fields.license === undefined ? {} : { license: fields.license }),
    tags: ['merge', 'amalgam'],
  });
  const others = [...new Set(fields.models)].filter((model) => model !== base);
  const fence = longerThanRuns(fields.recipe, 3);
  return `---
${front}---

# ${markdownText(fields.title)}

A merge of ${fields.of}, made with Amalgam ${markdownText(fields.version)} by ${markdownText(method.title)}
(${link(markdownText(method.reference.label), method.reference.url)}).

## Models

${base === undefined ? '' : `* ${reference(base, fields.hubIds)} (base)\n`}${others.map((model) => `* ${reference(model, fields.hubIds)}\n`).join('')}
${licenseSection(fields.licenses)}## Recipe

The same recipe and the same input files give the same output files, byte for byte.

${fence}yaml
${fields.recipe.trimEnd()}
${fence}
`;
}

/**
 * The model card of what a tool made of one model.
 * @param hub id of the original on the Hub, where it is there
 * @param title and `lead`: as Markdown
 * @param facts a line each, as plain text
 */
export function madeCard(
  hub: string | undefined,
  { tag, title, lead, facts }: { tag: string; title: string; lead: string; facts: readonly string[] },
): string {
  const front = yamlText({
    ...(hub === undefined ? {} : { base_model: [hub] }),
    ...{ library_name: 'transformers', tags: [tag, 'amalgam'] },
  });
  const lines = facts.map((fact) => `* ${markdownText(fact)}`);
  return `---\n${front}---\n\n# ${title}\n\n${lead}\n\n${lines.join('\n')}\n`;
}

function licenseSection(licenses: ModelCardFields['licenses']): string {
  if (!licenses) return '';
  const tree = licenses.family.map(
    ({ depth, id, said }) =>
      `${'  '.repeat(depth)}* ${nameCode(id)}${said === '' ? '' : `: ${markdownText(said)}`}`,
  );
  const findings = licenses.findings.map((line) => `\n${markdownText(line)}\n`);
  return `## Licenses

As the pages of the models say; no license text was read.

${tree.join('\n')}
${findings.join('')}
`;
}

/** Words of the link to the studio, which a card has once. */
const OPEN = 'Open this recipe in Amalgam';
const OPENS = /^\[Open this recipe in Amalgam\]\([^)\n]*\)\n\n/m;

/**
 * A card with a link under its title that opens the recipe in the studio, in place of one to the recipe itself; the card as it is
 * where the address is no https.
 * @param studio address of the studio
 * @param repo of the model on the Hub
 */
export function withStudioLink(card: string, studio: string, repo: string): string {
  return withLink(card, `${studio.replace(/#.*$/, '')}#hub=${repo}`);
}

/** Longest recipe that a link in a card carries, in bytes. */
const LONGEST_LINKED = 8192;

/**
 * The same for a card that is on no Hub yet: the link carries the recipe, as deflated data (RFC 1951) whose blocks are stored,
 * since compressors differ and cards are to be the same everywhere.
 */
export function withRecipeLink(card: string, studio: string, recipe: string): string {
  const bytes = new TextEncoder().encode(recipe);
  if (bytes.length > LONGEST_LINKED) return card;
  const lengths = new Uint8Array(Uint16Array.of(bytes.length, ~bytes.length).buffer);
  const text = btoa(String.fromCharCode(1, ...lengths, ...bytes));
  const packed = text.replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
  return withLink(card, `${studio.replace(/#.*$/, '')}#recipe=${packed}`);
}

function withLink(card: string, address: string): string {
  const words = link(OPEN, address);
  if (!words.startsWith('[')) return card;
  return card.replace(OPENS, '').replace(/^# .*\n/m, (title) => `${title}\n${words}\n`);
}

/** The repositories of a model reference: the model's, then its adapter's. */
function repos(text: string): RepoRef[] {
  const { model, adapter } = parseModelRef(text);
  return adapter ? [model, adapter] : [model];
}

function reference(text: string, hubIds: ReadonlySet<string>): string {
  return repos(text)
    .map(({ path, revision }) => {
      const label = nameCode(revision === undefined ? path : `${path}@${revision}`);
      const { repo } = hubFile(path);
      if (!hubIds.has(path) || !isRepoId(repo)) return label;
      const tree =
        revision !== undefined && isRevision(revision) ? `/tree/${encodeURIComponent(revision)}` : '';
      return link(label, `${DEFAULT_HUB_URL}/${repo}${tree}`);
    })
    .join(' with adapter ');
}

function link(label: string, url: string): string {
  return /^https:\/\/[\w./%~#?=&+-]+$/.test(url) ? `[${label}](${url})` : label;
}

/**
 * A model's name as a code span, in which Markdown knows no markup, no HTML and no addresses. Invisible characters and
 * angle brackets are spelled out, so that not even the source has a tag in it.
 */
export function nameCode(name: string): string {
  const shown = displayName(name).replace(/[<>]/g, (c) => `\\u{${c.charCodeAt(0).toString(16)}}`);
  const fence = longerThanRuns(shown, 1);
  // One space at each end is taken off again.
  const pad = /^[ `]|[ `]$/.test(shown) && shown.trim() !== '' ? ' ' : '';
  return `${fence}${pad}${shown}${pad}${fence}`;
}

/** Backticks: more than any run of them in the text, and at least `least`. */
export function longerThanRuns(text: string, least: number): string {
  return '`'.repeat(Math.max(least, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)));
}

/**
 * Running text as Markdown that renders to the text itself (CommonMark and GitHub's dialect): invisible characters
 * spelled out, HTML as entities, everything with a meaning escaped.
 */
export function markdownText(text: string): string {
  return displayName(text)
    .replace(/[\\`*_{}[\]()#!|~:@$^]/g, '\\$&')
    .replace(/&/g, '&amp;')
    .replace(/</g, '&lt;')
    .replace(/>/g, '&gt;')
    .replace(/www\./gi, (www) => `${www.slice(0, 3)}\\.`)
    .replace(/^ *(?:[-+=]|\d+[.)](?= |$))/, (mark) => `${mark.slice(0, -1)}\\${mark.slice(-1)}`);
}
