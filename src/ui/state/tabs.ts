/** The tabs of the studio, in their order. What each shows is in `tab-parts`. */
export const TABS = [
  { id: 'recipe', text: 'Recipe' },
  { id: 'plan', text: 'Plan' },
  { id: 'layers', text: 'Layers' },
  { id: 'run', text: 'Run' },
  { id: 'evaluate', text: 'Evaluate' },
  { id: 'compare', text: 'Difference' },
  { id: 'collapse', text: 'Collapse' },
  { id: 'output', text: 'Output' },
] as const;

export type Tab = (typeof TABS)[number]['id'];
