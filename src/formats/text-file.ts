/** Text files that people give: plain text, and rows of JSON. */
import { AmalgamError } from '../errors';
import { columnsTitle, conversationColumnsOf, conversationLine, conversationOf } from './conversations';

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
  const rows = content
    .split(/\r?\n/)
    .map((line, i) => ({ line, number: i + 1 }))
    .filter(({ line }) => line.trim() !== '')
    .map(({ line, number }) => ({ number, row: parsedRow(line) }));
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

function parsedRow(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    // not JSON at all: the caller throws, with the line's number
    return undefined;
  }
}
