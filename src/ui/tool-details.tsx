/** What tools show of the selected tensor, in the panel beside their tabs. */
import { type ComponentType, lazy, type ReactNode } from 'react';
import type { Tab } from './state/tabs';

const DETAILS = import.meta.glob<{ Detail: ComponentType }>('../tools/*/Detail.tsx');
const details = new Map<string, ReactNode>(
  Object.entries(DETAILS).map(([path, load]) => {
    const Detail = lazy(async () => ({ default: (await load()).Detail }));
    return [path, <Detail key={path} />];
  }),
);

/** What a tab has beside it of its own; undefined for none. */
export function detailOf(tab: Tab): ReactNode | undefined {
  return details.get(`../tools/${tab}/Detail.tsx`);
}
