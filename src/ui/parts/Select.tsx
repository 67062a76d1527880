import type { ComponentProps } from 'react';

interface SelectProps<T extends string>
  extends Omit<ComponentProps<'select'>, 'value' | 'onChange' | 'children'> {
  value: T;
  options: readonly { value: T; label: string }[];
  onChange(value: T): void;
}

/** One of many, from a list that opens. */
export function Select<T extends string>(props: SelectProps<T>) {
  const { value, options, onChange, className = 'select', ...rest } = props;
  return (
    <select
      {...rest}
      className={className}
      value={value}
      onChange={({ target }) => {
        const option = options.find((o) => o.value === target.value);
        if (option) onChange(option.value);
      }}
    >
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.label}
        </option>
      ))}
    </select>
  );
}

/** Values that are called what they are. */
export function named<T extends string>(values: readonly T[]): { value: T; label: string }[] {
  return values.map((value) => ({ value, label: value }));
}
