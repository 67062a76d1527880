import type { CSSProperties } from 'react';
import { CONTRIBUTOR_COLORS } from '../state/recipe-state';

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
