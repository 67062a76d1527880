import { type CSSProperties, Fragment, type ReactNode, useId } from 'react';
import { formatBytes, formatCounted, formatParameters } from '../../formats/quantity';
import type { ModelInfo } from '../../reports/models';
import { CONTRIBUTOR_COLORS } from '../state/recipe-state';

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

/** Characters at the end of a name that stay where it is cut: its last part, its last words, or a few. */
function endOf(text: string): number {
  const [, end] = / · (.{1,14})$/.exec(text) ?? /\s(\S.{0,12})$/.exec(text) ?? [];
  return end?.length ?? 8;
}

interface CutProps {
  text: string;
  /** Characters that stay. */
  end?: number;
  title?: string;
}

/** A name in one line; where it is too long it is cut in the middle: names of runs differ at their ends. */
export function Cut({ text, end = endOf(text), title = text }: CutProps) {
  const at = Math.max(0, text.length - end);
  return (
    <span className="cut nowrap" title={title}>
      {at === 0 || at === text.length ? (
        <bdi className="truncate">{text}</bdi>
      ) : (
        <>
          {/* heard as one word */}
          <span className="visually-hidden">{text}</span>
          <bdi className="truncate" aria-hidden="true">
            {text.slice(0, at)}
          </bdi>
          <bdi className="rigid" aria-hidden="true">
            {text.slice(at)}
          </bdi>
        </>
      )}
    </span>
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

/** Figures side by side, each with its name and a few words of context. */
export function Costs({ items }: { items: readonly Cost[] }) {
  return (
    <dl className="columns costs panel">
      {items.map(([label, value, more]) => (
        <div key={label}>
          <dt className="label">{label}</dt>
          <dd className="grid">
            <strong>{value}</strong>
            <span className="small quiet">{more}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** Letters of the shown runs, by their places. */
export const LETTERS = ['A', 'B', 'C', 'D'];

/** The CSS color of a contributor. */
export function modelColor(color: number): string {
  return `var(--model-${color % CONTRIBUTOR_COLORS})`;
}

/** The color of a shown run, by its place. */
export function runColor(place: number): CSSProperties {
  return { '--run': `var(--run-${place})` } as CSSProperties;
}

/** The letter of a shown run on its color; other words, for what is no run, on that of a tag. */
export function RunLetter({ place, children = LETTERS[place] }: { place: number; children?: string }) {
  return (
    <span
      className="tag rigid run-letter"
      {...(place >= 0 ? { 'data-run': true, style: runColor(place) } : {})}
    >
      {children}
    </span>
  );
}

/** A contributor's color; the name stands beside it or in the label. */
export function Swatch({ color, dot, label }: { color: number; dot?: boolean; label?: string }) {
  return (
    <span
      className="swatch"
      data-dot={dot || undefined}
      style={{ background: modelColor(color) }}
      {...(label ? { role: 'img', 'aria-label': label, title: label } : { 'aria-hidden': true })}
    />
  );
}

interface ModelMetaProps {
  model: ModelInfo;
  /** Only what fits on one line of a card. */
  short?: boolean;
  children?: ReactNode;
}

/** Summary of a model in one line: `llama · 1.24 M params · BF16 · 2.48 MB · 6 layers`. */
export function ModelMeta({ model, short, children }: ModelMetaProps) {
  const { adapter, family, layers, commit } = model;
  const isBrief = short === true && adapter !== undefined;
  const isWhole = !short && !adapter;
  const facts = [
    adapter?.summary,
    isWhole && family,
    !isBrief && `${formatParameters(model.parameters)} params`,
    !isBrief && Object.keys(model.dtypes).join(' + '),
    formatBytes(model.bytes),
    isWhole && layers !== undefined && formatCounted(layers, 'layer'),
    !isBrief && model.license,
  ];
  return (
    <div className="row wrap small quiet close">
      {facts.map((fact) => (fact ? <span key={fact}>{fact}</span> : null))}
      {commit && !isBrief ? <code title={commit}>{commit.slice(0, 7)}</code> : null}
      {children}
    </div>
  );
}

/** A long name, which may go on in the next line after a dot or an underscore. */
export function BrokenName({ name }: { name: string }) {
  return name.split(/(?<=[._])/).map((part, i) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one name do not move.
    <Fragment key={i}>
      {i > 0 ? <wbr /> : null}
      {part}
    </Fragment>
  ));
}
