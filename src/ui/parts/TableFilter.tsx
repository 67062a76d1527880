import { formatCount, formatCounted } from '../../formats/quantity';
import { SearchIcon } from './icons';

interface TableFilterProps {
  value: string;
  /** Rows that are left, of so many. */
  shown: number;
  of: number;
  /** Noun for a row: `output tensor`. */
  what: string;
  onChange(value: string): void;
}

/** A field that narrows a table of tensors, and the number of remaining rows. */
export function TableFilter({ value, shown, of, what, onChange }: TableFilterProps) {
  return (
    <>
      <label className="search">
        <SearchIcon />
        <input
          className="field"
          type="search"
          placeholder="Filter tensors, e.g. layers.3 mlp"
          aria-label="Filter tensors"
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      </label>
      <span className="small quiet" role="status">
        {value.trim() === ''
          ? formatCounted(of, what)
          : `${formatCount(shown)} of ${formatCounted(of, 'tensor')}`}
      </span>
    </>
  );
}

/** Why a filtered table is empty. */
export function noTensorWords(filter: string, none: string): string {
  const words = filter.trim();
  return words === '' ? none : `No tensor’s name contains “${words}”.`;
}

/** Whether a text has every word of the filter, in any order and case. */
export function passesFilter(filter: string, text: string): boolean {
  if (filter === '') return true; // of a hundred thousand names
  const low = text.toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => low.includes(word));
}
