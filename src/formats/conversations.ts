/**
 * Conversations as training data stores them, and as a text of ours: a JSON list of messages a line, the role first. Such a
 * text is what a model reads of it once its own chat template has written it out.
 */
import { AmalgamError } from '../errors';

export interface Message {
  role: string;
  content: string;
}

/** Columns that make up one conversation a row. */
export type ConversationColumns =
  /** Lists of messages, one after the other. */
  | { kind: 'messages'; columns: string[] }
  /** A question, with what it is about, and its answer. */
  | { kind: 'instruction'; system?: string; prompt: string; context?: string; answer: string };

const MESSAGE_LISTS = ['messages', 'conversations', 'conversation'];
const PROMPTS = ['instruction', 'prompt', 'question', 'query', 'problem'];
const ANSWERS = ['output', 'response', 'completion', 'answer', 'solution', 'chosen'];
const CONTEXTS = ['input', 'context'];
const SYSTEMS = ['system', 'system_prompt'];

/**
 * The columns of conversations among those of a file, or undefined: `messages` (OpenAI, TRL), `conversations` (ShareGPT),
 * `prompt` and `completion` as lists (TRL), or columns of instructions and answers (Alpaca, Dolly, question and answer).
 *
 * @param texts columns that hold text
 * @param lists columns that hold lists of messages
 */
export function conversationColumns(
  texts: readonly string[],
  lists: readonly string[],
): ConversationColumns | undefined {
  const first = (names: readonly string[], of: readonly string[]) => names.find((name) => of.includes(name));
  const asked = first(PROMPTS, lists);
  const answered = first(ANSWERS, lists);
  if (asked !== undefined && answered !== undefined) return { kind: 'messages', columns: [asked, answered] };
  const list = first(MESSAGE_LISTS, lists) ?? lists[0];
  if (list !== undefined) return { kind: 'messages', columns: [list] };
  const context = first(CONTEXTS, texts);
  const prompt = first(PROMPTS, texts) ?? context;
  const answer = first(ANSWERS, texts);
  if (prompt === undefined || answer === undefined) return undefined;
  const system = first(SYSTEMS, texts);
  return {
    kind: 'instruction',
    prompt,
    answer,
    ...(system === undefined ? {} : { system }),
    ...(context === undefined || context === prompt ? {} : { context }),
  };
}

/** The columns of conversations of one row, by its values. */
export function conversationColumnsOf(
  row: Readonly<Record<string, unknown>>,
): ConversationColumns | undefined {
  const names = Object.keys(row);
  const isList = (value: unknown) =>
    Array.isArray(value) && value.length > 0 && value.every((item) => messageFields(item) !== undefined);
  return conversationColumns(
    names.filter((name) => typeof row[name] === 'string'),
    names.filter((name) => isList(row[name])),
  );
}

/** All names of the columns. */
export function namesOf(columns: ConversationColumns): string[] {
  if (columns.kind === 'messages') return columns.columns;
  const { system, prompt, context, answer } = columns;
  return [system, prompt, context, answer].filter((name) => name !== undefined);
}

/** Title of the columns, for display and to choose them by: `messages`, `instruction, input → output`. */
export function columnsTitle(columns: ConversationColumns): string {
  const names = namesOf(columns);
  return [names.slice(0, -1).join(', '), names.at(-1)].filter((part) => part !== '').join(' → ');
}

/** The conversation of a row; undefined where it has none, or one with something else than text in it. */
export function conversationOf(
  row: Readonly<Record<string, unknown>>,
  columns: ConversationColumns,
): Message[] | undefined {
  if (columns.kind === 'messages') {
    const messages = columns.columns.flatMap((name) => {
      const value = row[name];
      return Array.isArray(value) ? value.map(messageOf) : [undefined];
    });
    return messages.length > 0 && messages.every((message) => message !== undefined) ? messages : undefined;
  }
  const text = (name: string | undefined) => {
    const value = name === undefined ? undefined : row[name];
    return typeof value === 'string' && value.trim() !== '' ? value : undefined;
  };
  const [system, prompt, context] = [text(columns.system), text(columns.prompt), text(columns.context)];
  const answer = text(columns.answer);
  if (prompt === undefined || answer === undefined) return undefined;
  return [
    ...(system === undefined ? [] : [{ role: 'system', content: system }]),
    { role: 'user', content: context === undefined ? prompt : `${prompt}\n\n${context}` },
    { role: 'assistant', content: answer },
  ];
}

/** Roles in ShareGPT and other formats → the role in chat templates. */
const ROLES: Readonly<Record<string, string>> = {
  human: 'user',
  gpt: 'assistant',
  bot: 'assistant',
  chatgpt: 'assistant',
  model: 'assistant',
  function: 'tool',
  observation: 'tool',
};

function messageFields(item: unknown): { role: string; content: unknown } | undefined {
  if (typeof item !== 'object' || item === null) return undefined;
  const { role, from, content, value } = item as Record<string, unknown>;
  const who = role ?? from;
  return typeof who === 'string' ? { role: who, content: content ?? value } : undefined;
}

function messageOf(item: unknown): Message | undefined {
  const fields = messageFields(item);
  if (!fields) return undefined;
  const content = contentText(fields.content);
  return content === undefined ? undefined : { role: ROLES[fields.role] ?? fields.role, content };
}

/** A text, or a list of parts that are all text. */
function contentText(content: unknown): string | undefined {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return undefined;
  const parts = content.map((part: unknown) =>
    typeof part === 'object' && part !== null && 'text' in part ? part.text : undefined,
  );
  return parts.every((part) => typeof part === 'string') ? parts.join('') : undefined;
}

/** One conversation as a line of a text. */
export function conversationLine(messages: readonly Message[]): string {
  return JSON.stringify(messages.map(({ role, content }) => ({ role, content })));
}

const BEGINNING = '[{"role":"';

/** Whether a text is conversations: what {@link conversationLine} writes. */
export function isConversations(text: string): boolean {
  return text.startsWith(BEGINNING);
}

/** The conversations of a text. @throws AmalgamError `JsonInvalid` naming the line */
export function parseConversations(text: string): Message[][] {
  return jsonLines(text).map(({ value, number }) => {
    const messages = Array.isArray(value) ? value.map(messageOf) : undefined;
    if (messages?.every((message) => message !== undefined)) return messages;
    throw new AmalgamError(
      'JsonInvalid',
      `Line ${number} of the conversations is no list of messages.`,
      'Every line must look like [{"role": "user", "content": "…"}, …].',
    );
  });
}

/** The values of the lines with something in them, and their numbers; undefined for one that is no JSON. */
function jsonLines(text: string): { value: unknown; number: number }[] {
  return text.split(/\r?\n/).flatMap((line, i) => {
    if (line.trim() === '') return [];
    try {
      return { value: parseLoosely(line), number: i + 1 };
    } catch {
      // the caller names the line
      return { value: undefined, number: i + 1 };
    }
  });
}

/** A row of JSON as Python writes it: NaN and infinities are null. @throws SyntaxError */
export function parseLoosely(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (thrown) {
    const plain = text.replace(/"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity)\b/g, (part) =>
      part[0] === '"' ? part : 'null',
    );
    if (plain === text) throw thrown;
    return JSON.parse(plain);
  }
}

// Text files that people give: plain text, and rows of JSON.

const LFS_POINTER = 'version https://git-lfs.github.com/spec/';

/** The text of a file's bytes. @throws AmalgamError `NotUtf8`, `LfsPointer` */
export function utf8Text(bytes: Uint8Array<ArrayBuffer>, name: string): string {
  refusePointer(bytes, name);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw notUtf8(name, cause);
  }
}

export function notUtf8(name: string, cause: unknown): AmalgamError {
  return new AmalgamError(
    'NotUtf8',
    `${name} is not UTF-8 text.`,
    'Save it as UTF-8, or choose another file or column.',
    { cause },
  );
}

/** @throws AmalgamError `LfsPointer` when a file is only the pointer to its content. */
export function refusePointer(head: Uint8Array<ArrayBuffer>, name: string): void {
  if (new TextDecoder().decode(head.subarray(0, LFS_POINTER.length)) !== LFS_POINTER) return;
  throw new AmalgamError(
    'LfsPointer',
    `${name} is a Git LFS pointer, not the data itself.`,
    'The repo was copied without its large files. Use the original, or run git lfs pull.',
  );
}

/**
 * The text of a file: a `.jsonl` file is the `text` of every line, joined by blank lines, or the conversation of every line;
 * anything else is text as it stands.
 * @throws AmalgamError `JsonInvalid` naming the line, `TextEmpty`
 */
export function textOfFile(name: string, content: string): string {
  const plain = content.replace(/^\uFEFF/, '');
  const text = /\.(jsonl|ndjson)$/i.test(name) ? textOfLines(name, plain) : plain;
  if (text.trim() === '') {
    throw new AmalgamError('TextEmpty', `${name} holds no text.`, 'Choose a file with some text in it.');
  }
  return text;
}

function textOfLines(name: string, content: string): string {
  const rows = jsonLines(content).map(({ value, number }) => ({
    number,
    row:
      typeof value === 'object' ? ((value ?? undefined) as Record<string, unknown> | undefined) : undefined,
  }));
  const first = rows[0]?.row;
  const columns = first && typeof first.text !== 'string' ? conversationColumnsOf(first) : undefined;
  const texts = rows.map(({ row, number }) => {
    if (columns) {
      const messages = row && conversationOf(row, columns);
      if (messages) return conversationLine(messages);
    } else if (typeof row?.text === 'string') return row.text;
    throw new AmalgamError(
      'JsonInvalid',
      columns
        ? `${name}, line ${number}: this is not a JSON object with a conversation in ${columnsTitle(columns)}.`
        : `${name}, line ${number}: this is not a JSON object with a string under “text”, nor a conversation.`,
      'Every line must look like {"text": "…"} or {"messages": [{"role": "user", "content": "…"}, …]}. A plain .txt file works, too.',
    );
  });
  return texts.join(columns ? '\n' : '\n\n');
}
