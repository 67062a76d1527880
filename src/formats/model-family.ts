/**
 * The models that a model was made from, as their pages on the Hub say, and what their licenses ask for: of the license of what
 * comes of them, and of those who share it. Reads no license text; it knows those that the Hub has an id for.
 */
import { displayName } from './names';

export type Relation = 'adapter' | 'finetune' | 'merge' | 'quantized';

export interface FamilyMember {
  /** `owner/name`, or the name of a local model. */
  id: string;
  /** How it was made from its parents, where its page says so. */
  relation?: Relation;
  parents: readonly string[];
  /** The Hub's id of its license: `apache-2.0`, `other`. */
  license?: string;
  /** Name and address of a license that the Hub has no id for. */
  licenseName?: string;
  licenseLink?: string;
  /** Nothing is known of it: its page is gone or private, or did not answer. */
  unread?: 'absent' | 'silent';
}

/** Bars of a license to what is made from the model. */
type Bar = 'nothing derived' | 'nothing commercial';

export interface LicenseTerms {
  bars: readonly Bar[];
  /** Licenses under which what is made from it has to come. */
  under?: RegExp;
  /** What has to be done when the result is shared. */
  asks?: string;
  /** What its name has to begin with. */
  name?: string;
}

const PERMISSIVE =
  /^(apache-2\.0|mit|bsd(-[23]-clause(-clear)?)?|isc|zlib|unlicense|wtfpl|cc0-1\.0|cc-by(-n[cd])*-\d\.\d|cdla-permissive-[12]\.0|openmdw-1\.0)$/;
/** For research: nothing commercial. */
const RESEARCH =
  /^(fair-noncommercial-research-license|apple-amlr|intel-research|h-research|deepfloyd-if-license)$/;
const RAIL = /openrail|bloom-rail/;
/** Of licenses that what is made from a model keeps: those that it may change to. */
const COPYLEFT: readonly (readonly [RegExp, RegExp])[] = [
  [/^cc-by-nc-sa-/, /^cc-by-nc-sa-/],
  [/^cc-by-sa-/, /^(cc-by-sa-|a?gpl-3)/],
  [/^agpl/, /^agpl/],
  [/^gpl/, /^a?gpl/],
  [/^lgpl/, /^[al]?gpl/],
];

/**
 * Terms of a license by the Hub's id; undefined for one that has to be read. Llama: section 1.b of its community licenses;
 * Gemma: section 3.1 of its terms; Creative Commons 4.0: sections 2 and 3.
 */
export function licenseTerms(license: string): LicenseTerms | undefined {
  const isResearch = /^cc-by-nc-/.test(license) || RESEARCH.test(license);
  const bars: Bar[] = [
    ...(/^cc-by(-nc)?-nd-/.test(license) ? ['nothing derived' as const] : []),
    ...(isResearch ? ['nothing commercial' as const] : []),
  ];
  const kept = COPYLEFT.find(([of]) => of.test(license));
  if (kept) return { bars, under: kept[1] };
  if (PERMISSIVE.test(license) || isResearch) return { bars };
  const same = { bars, under: new RegExp(`^${license.replace(/[^\w-]/g, '\\$&')}$`) };
  const llama = /^llama([\d.]+)$/.exec(license)?.[1];
  if (llama !== undefined) {
    const [shown, name] =
      llama === '3' ? ['Built with Meta Llama 3', 'Llama 3'] : ['Built with Llama', 'Llama'];
    const asks = `a copy of the Llama ${llama} license and its notice`;
    return Number(llama) < 3
      ? { ...same, asks }
      : { ...same, asks: `${asks}, “${shown}” shown beside it`, name };
  }
  if (license === 'gemma') {
    return { ...same, asks: 'a copy of the Gemma Terms of Use, their notice, and word of what was changed' };
  }
  return RAIL.test(license) ? { ...same, asks: 'its restrictions of use passed on' } : undefined;
}

/** What is to be said of licenses. */
export interface LicenseFinding {
  severity: 'warning' | 'note';
  code: 'LicenseForbids' | 'LicenseContradicts' | 'LicenseAsks' | 'LicenseUnread';
  message: string;
  remedy: string;
}

/** Members of several families, each once. */
export function familyOf(folders: readonly { family?: readonly FamilyMember[] }[]): FamilyMember[] {
  const own = folders.flatMap(({ family = [] }) => family.slice(0, 1));
  const others = folders.flatMap(({ family = [] }) => family.slice(1));
  // one that was opened says more than one that was looked up
  return [...new Map([...others.reverse(), ...own].map((member) => [member.id, member])).values()].reverse();
}

/** A model and all its ancestors in the family, nearest first, each once; members that refer to each other end there. */
export function ancestry(id: string, family: readonly FamilyMember[]): FamilyMember[] {
  const known = new Map(family.map((member) => [member.id, member]));
  const found = new Set<FamilyMember>();
  const add = (name: string) => {
    const member = known.get(name);
    if (member) found.add(member);
  };
  add(id);
  for (const { parents } of found) parents.forEach(add);
  return [...found];
}

/**
 * What the licenses of a family forbid or ask for: where what is made from models may not be shared, where a model, or the
 * output, claims a license that its ancestors do not allow, and what has to be done when the result is shared.
 * @param inputs ids of the models that are merged
 * @param output its license and name, where they are chosen
 */
export function licenseFindings(
  family: readonly FamilyMember[],
  inputs: readonly string[],
  output: { id?: string; license?: string; name?: string } = {},
): LicenseFinding[] {
  const own = output.id ?? 'The output';
  const members = new Map(inputs.flatMap((id) => ancestry(id, family)).map((one) => [one.id, one]));
  const all = [...members.values()];
  const findings: LicenseFinding[] = [];
  const barred = all.filter((one) => termsOf(one)?.bars.includes('nothing derived'));
  if (barred.length > 0) {
    findings.push({
      ...{ severity: 'warning', code: 'LicenseForbids' },
      message: `No derivatives: ${listed(barred)} ${barred.length === 1 ? 'does' : 'do'} not allow that what is made from ${barred.length === 1 ? 'it' : 'them'} is shared.`,
      remedy: 'Leave it out, keep the result to yourself, or ask its author.',
    });
  }
  const claimed = output.license === undefined ? [] : [{ id: own, license: output.license, parents: inputs }];
  const claims: FamilyMember[] = [...claimed, ...inputs.flatMap((id) => members.get(id) ?? [])];
  for (const claim of claims) {
    for (const ancestor of claim.parents.flatMap((id) => ancestry(id, all))) {
      const why = ancestor === claim ? undefined : contradiction(claim, ancestor);
      if (why === undefined) continue;
      findings.push({
        ...{ severity: 'warning', code: 'LicenseContradicts' },
        message: `${displayName(claim.id)} says ${displayName(claim.license!)}, but comes from ${named(ancestor)}: ${why}.`,
        remedy: `Hold to ${displayName(ancestor.license!)} when you use or share the result.`,
      });
    }
  }
  const research = all.filter((one) => termsOf(one)?.bars.includes('nothing commercial'));
  if (research.length > 0)
    findings.push(
      note(
        'LicenseAsks',
        `Nothing commercial: ${listed(research)}.`,
        'The result may not be used commercially either.',
      ),
    );
  const asking = new Map(
    all.flatMap((one) => (termsOf(one)?.asks === undefined ? [] : [[one.license!, one] as const])),
  );
  for (const [license, one] of asking) {
    const { asks, name } = termsOf(one)!;
    const isNamed =
      name === undefined ||
      output.name === undefined ||
      output.name.toLowerCase().replace(/[-_]/g, ' ').startsWith(name.toLowerCase());
    findings.push({
      severity: isNamed ? 'note' : 'warning',
      code: 'LicenseAsks',
      message: `${displayName(license)} (${displayName(one.id)}) asks of those who share the result: ${asks}${name === undefined ? '' : `, and a name that begins with ${name}${isNamed ? '' : `, which ${displayName(output.name!)} does not`}`}.`,
      remedy: 'Do so before you push it.',
    });
  }
  const odd = all.filter((one) => one.license !== undefined && !licenseTerms(one.license));
  const absent = all.filter(({ unread }) => unread !== undefined);
  if (odd.length > 0)
    findings.push(
      note(
        'LicenseUnread',
        `Licenses of their own: ${listed(odd)}.`,
        'Read what they allow before you share the result.',
      ),
    );
  if (absent.length > 0) {
    findings.push(
      note(
        'LicenseUnread',
        `Nothing is known of ${absent.map(({ id }) => displayName(id)).join(', ')}, of which models here are made: ${absent.some(({ unread }) => unread === 'silent') ? 'the hub did not answer' : 'gone or private'}.`,
        'Ask their authors which license holds.',
      ),
    );
  }
  return findings;
}

export interface FamilyLine {
  /** 0 for a model that nothing else here was made from. */
  depth: number;
  id: string;
  /** Its license, and how it was made; empty where nothing is known. */
  said: string;
}

/**
 * The family as lines, each member under what was made from it, from those that nothing was made from; one that was shown is
 * not followed again.
 */
export function familyLines(family: readonly FamilyMember[]): FamilyLine[] {
  const known = new Map(family.map((member) => [member.id, member]));
  const shown = new Set<string>();
  const lines = (id: string, depth: number): FamilyLine[] => {
    const member = known.get(id);
    const isShown = shown.has(id);
    shown.add(id);
    const { relation, parents = [] } = member ?? {};
    const how = relation && parents.length > 0 ? [relation] : [];
    const line = { depth, id, said: member ? [licenseWords(member), ...how].join(', ') : '' };
    return [line, ...(isShown ? [] : parents.flatMap((parent) => lines(parent, depth + 1)))];
  };
  const isParent = (id: string) => family.some((one) => one.id !== id && one.parents.includes(id));
  const roots = family.filter(({ id }) => !isParent(id));
  return (roots.length > 0 ? roots : family.slice(0, 1)).flatMap(({ id }) => lines(id, 0));
}

function note(code: LicenseFinding['code'], message: string, remedy: string): LicenseFinding {
  return { severity: 'note', code, message, remedy };
}

function termsOf({ license }: FamilyMember): LicenseTerms | undefined {
  return license === undefined ? undefined : licenseTerms(license);
}

/** Why a model of this license cannot come from that one; undefined where it can, or a license has to be read. */
function contradiction(claim: FamilyMember, ancestor: FamilyMember): string | undefined {
  const [own, theirs] = [termsOf(claim), termsOf(ancestor)];
  if (!own || !theirs || claim.license === ancestor.license) return undefined;
  const lost = theirs.bars.find((bar) => !own.bars.includes(bar));
  if (lost !== undefined) return `it allows ${lost}`;
  if (theirs.under && !theirs.under.test(claim.license!)) return 'its license stays with derivatives';
  return undefined;
}

function licenseWords({ license, licenseName, unread }: FamilyMember): string {
  if (unread !== undefined) return unread === 'absent' ? 'gone or private' : 'not answered for';
  if (license === undefined) return 'no license named';
  return displayName(license === 'other' && licenseName !== undefined ? `other: ${licenseName}` : license);
}

function named(member: FamilyMember): string {
  return `${displayName(member.id)} (${licenseWords(member)})`;
}

function listed(members: readonly FamilyMember[]): string {
  return members.map(named).join(', ');
}
