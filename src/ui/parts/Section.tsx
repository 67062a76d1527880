import { type ReactNode, useId } from 'react';

interface SectionProps {
  title: ReactNode;
  /** At the right end of the heading: a link or a small control. */
  aside?: ReactNode;
  className?: string;
  children: ReactNode;
}

/** A titled part of a panel. */
export function Section({ title, aside, className, children }: SectionProps) {
  const id = useId();
  return (
    <section className={`stack section${className ? ` ${className}` : ''}`} aria-labelledby={id}>
      <div className="row spread section-head">
        <h2 id={id} className="label">
          {title}
        </h2>
        {aside}
      </div>
      {children}
    </section>
  );
}

/** One line of a list of numbers. */
export function Fact({ label, value, bad }: { label: string; value: string; bad?: boolean }) {
  return (
    <div>
      <dt className="quiet">{label}</dt>
      <dd className={bad ? 'tone-bad' : undefined}>{value}</dd>
    </div>
  );
}

/** A list that is folded away while it is long, and what it is of. */
export function FoldedList({
  title,
  items,
  bad,
}: {
  title: string;
  items: readonly string[];
  bad?: boolean;
}) {
  return items.length === 0 ? null : (
    <details open={bad === true || items.length <= 3}>
      <summary className={bad ? 'small tone-bad' : 'small quiet'}>{title}</summary>
      <ul className="problem-tensors scroll mono small">
        {items.map((item) => (
          <li key={item}>{item}</li>
        ))}
      </ul>
    </details>
  );
}

/** What was found, in sentences. */
export function Sentences({ words, bad }: { words: readonly string[]; bad?: boolean }) {
  return words.length === 0 ? null : (
    <ul className={bad ? 'stack tight findings tone-bad' : 'stack tight findings'}>
      {words.map((sentence) => (
        <li key={sentence}>{sentence}</li>
      ))}
    </ul>
  );
}

export type Cost = [label: string, value: string, more: string];

interface CostsProps {
  items: readonly Cost[];
  /** Long words of context break into lines instead of being cut. */
  wraps?: boolean;
}

/** Figures side by side, each with its name and a few words of context. */
export function Costs({ items, wraps = false }: CostsProps) {
  return (
    <dl className="columns costs panel">
      {items.map(([label, value, more]) => (
        <div key={label}>
          <dt className="label">{label}</dt>
          <dd className="grid">
            <strong>{value}</strong>
            {wraps ? (
              <span className="small quiet">{more}</span>
            ) : (
              <span className="small quiet truncate" title={more}>
                {more}
              </span>
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}
