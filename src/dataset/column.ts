import { AmalgamError } from '../errors';
import { displayName } from '../formats/names';

/**
 * The column that is read: the one asked for, else `text`, else the only one that holds text.
 *
 * @param texts columns that hold text
 * @param all all columns, for messages
 * @throws AmalgamError `ColumnMissing` naming the columns there are
 */
export function chooseColumn(
  name: string,
  texts: readonly string[],
  all: readonly string[],
  asked: string | undefined,
): string {
  const found = asked ?? (texts.includes('text') ? 'text' : texts.length === 1 ? texts[0] : undefined);
  if (found !== undefined && texts.includes(found)) return found;
  const list = texts.map((column) => `“${displayName(column)}”`).join(', ');
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
