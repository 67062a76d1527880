/** Details of the selected tensor by tool, in the panel beside the tool's tab. */
import { type ComponentType, lazy, type ReactNode } from 'react';
import type { Tab } from './state/tabs';

const DETAILS = import.meta.glob<{ Detail: ComponentType }>('../tools/*/Detail.tsx');
const details = new Map<string, ReactNode>(
  Object.entries(DETAILS).map(([path, load]) => {
    const Detail = lazy(async () => ({ default: (await load()).Detail }));
    return [path, <Detail key={path} />];
  }),
);

/** Panel beside a tab; undefined for none. */
export function detailOf(tab: Tab): ReactNode | undefined {
  return details.get(`../tools/${tab}/Detail.tsx`);
}
