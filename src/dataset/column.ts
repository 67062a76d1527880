import { AmalgamError } from '../errors';
import { type ConversationColumns, columnsTitle } from '../formats/conversations';
import { displayName } from '../formats/names';

/** Readable columns of a file: columns of text, and conversations in one or several columns. */
export interface ReadableColumns {
  /** Columns that hold text. */
  texts: readonly string[];
  conversations: ConversationColumns | undefined;
  /** All columns, for messages. */
  all: readonly string[];
}

/**
 * The column that is read: the one asked for, else `text`, else conversations, else the only one that holds text.
 *
 * @throws AmalgamError `ColumnMissing` naming the columns there are
 */
export function chooseColumn(
  name: string,
  { texts, conversations, all }: ReadableColumns,
  asked: string | undefined,
): string | ConversationColumns {
  if (conversations && asked === columnsTitle(conversations)) return conversations;
  if (asked === undefined && conversations && !texts.includes('text')) return conversations;
  const found = asked ?? (texts.includes('text') ? 'text' : texts.length === 1 ? texts[0] : undefined);
  if (found !== undefined && texts.includes(found)) return found;
  const titles = conversations ? [...texts, columnsTitle(conversations)] : texts;
  const some = titles.slice(0, 20).map((column) => `“${displayName(column)}”`);
  const list = `${some.join(', ')}${titles.length > some.length ? ' and more' : ''}`;
  throw new AmalgamError(
    'ColumnMissing',
    asked === undefined
      ? `${name} has ${texts.length === 0 ? 'no column' : 'several columns'} of text${list ? `: ${list}` : ''}.`
      : all.includes(asked)
        ? `The column “${displayName(asked)}” of ${name} does not hold text.`
        : `${name} has no column “${displayName(asked)}”.`,
    list ? `Choose one of its text columns: ${list}.` : 'Choose another file.',
  );
}
