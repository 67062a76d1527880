/**
 * Editing a JSON object as text. Parsing and printing a config again would turn `1.0` into `1`, and transformers
 * checks the types of its config fields strictly; so members that are not edited keep every character.
 */
import { type JsonRules, openJson, type PlainJson, peekKind, readObject, skipValue } from './strict-json';

/** A new value, or for a member that is there a change of its text. */
export type JsonEdit = PlainJson | ((text: string) => string);

/**
 * Sets top-level members of a JSON object, in place where they exist and at the end where they do not.
 *
 * @param text a valid JSON object (the caller has parsed it)
 * @param edits member name → new value; a change of text is for members that exist
 */
export function editJsonObject(text: string, edits: ReadonlyMap<string, JsonEdit>): string {
  const { members, close } = topLevelMembers(text);
  const indent = members[0] ? lineIndent(text, members[0].begin) : '  ';
  const print = (value: JsonEdit) => JSON.stringify(value, null, indent || 2).replaceAll('\n', `\n${indent}`);

  let out = '';
  let at = 0;
  const left = new Map(edits);
  for (const member of members) {
    const value = edits.get(member.name);
    if (value === undefined) continue;
    const old = text.slice(member.valueBegin, member.valueEnd);
    out += text.slice(at, member.valueBegin) + (typeof value === 'function' ? value(old) : print(value));
    at = member.valueEnd;
    left.delete(member.name);
  }
  if (left.size === 0) return out + text.slice(at);

  const end = members.at(-1)?.valueEnd ?? text.indexOf('{') + 1;
  out += text.slice(at, end);
  const added = [...left].map(([name, value]) => `\n${indent}${JSON.stringify(name)}: ${print(value)}`);
  out += (members.length > 0 ? ',' : '') + added.join(',');
  return out + (members.length > 0 ? text.slice(end) : `\n${text.slice(close)}`);
}

/** The object without these members, each with the comma and the white space that go with it. */
export function withoutMembers(text: string, names: readonly string[]): string {
  let out = text;
  for (const name of names) {
    const { members } = topLevelMembers(out);
    const at = members.findIndex((member) => member.name === name);
    if (at < 0) continue;
    const [before, after] = [members[at - 1], members[at + 1]];
    const begin = before ? before.valueEnd : members[at]!.begin;
    const end = before ? members[at]!.valueEnd : (after?.begin ?? members[at]!.valueEnd);
    out = out.slice(0, begin) + out.slice(end);
  }
  return out;
}

interface Member {
  name: string;
  begin: number;
  valueBegin: number;
  valueEnd: number;
}

const RULES: JsonRules = {
  code: 'JsonInvalid',
  maxLength: Number.POSITIVE_INFINITY,
  maxString: Number.POSITIVE_INFINITY,
  pythonNumbers: true,
};

/** Spans of the members of the outermost object, and of its closing brace. */
function topLevelMembers(text: string): { members: Member[]; close: number } {
  const members: Member[] = [];
  const cursor = openJson(text, 'The config', RULES);
  readObject(cursor, (name, begin) => {
    peekKind(cursor);
    const valueBegin = cursor.at;
    skipValue(cursor);
    members.push({ name, begin, valueBegin, valueEnd: cursor.at });
  });
  return { members, close: cursor.at - 1 };
}

/** White space between the start of the line and `at`; empty when something else stands there. */
function lineIndent(text: string, at: number): string {
  const line = text.slice(text.lastIndexOf('\n', at) + 1, at);
  return text.lastIndexOf('\n', at) >= 0 && line.trim() === '' ? line : '';
}
