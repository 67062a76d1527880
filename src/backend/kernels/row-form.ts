import type { Backend } from '../backend';

/** Row by row work on a workgroup (shaders/lib/row-group.wgsl) or on one invocation (shaders/lib/row-line.wgsl). */
export const ROW_LIBRARY = { group: 'rowGroup', line: 'rowLine' } as const;
export type RowForm = keyof typeof ROW_LIBRARY;

/** The form for this engine, and the workgroups of it that cover `rows`. */
export function rowForm(engine: Pick<Backend, 'software'>, rows: number): { form: RowForm; groups: number } {
  return engine.software ? { form: 'line', groups: Math.ceil(rows / 64) } : { form: 'group', groups: rows };
}
