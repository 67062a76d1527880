import { AmalgamError, errorReport } from '../errors';
import type { PlanProblem } from '../reports/plan';

/** Collects the problems of a plan. */
export interface Problems {
  /** Records a problem; one with the same code and message as an earlier one only adds its tensors to that. */
  add(problem: PlanProblem): void;
  error: AddProblem;
  warn: AddProblem;
  /** Without a remedy: nothing has to be done. */
  note(code: string, message: string, remedy?: string, tensors?: string[]): void;
  hasErrors(): boolean;
  /** Errors first, then warnings, then notes; within a severity in the order found. */
  list(): PlanProblem[];
}

type AddProblem = (code: string, message: string, remedy: string, tensors?: string[]) => void;

const SEVERITIES: readonly PlanProblem['severity'][] = ['error', 'warning', 'note'];

export function collectProblems(): Problems {
  const found = new Map<string, PlanProblem>();
  const add = (problem: PlanProblem) => {
    const key = `${problem.code}\n${problem.message}`;
    const earlier = found.get(key);
    if (!earlier) found.set(key, { ...problem });
    else if (problem.tensors) earlier.tensors = [...(earlier.tensors ?? []), ...problem.tensors];
  };
  const adding =
    (severity: PlanProblem['severity']): AddProblem =>
    (code, message, remedy, tensors) =>
      add({ severity, code, message, remedy, ...(tensors && { tensors }) });
  return {
    add,
    error: adding('error'),
    warn: adding('warning'),
    note: (code, message, remedy = 'No action needed.', tensors) =>
      adding('note')(code, message, remedy, tensors),
    hasErrors: () => [...found.values()].some((p) => p.severity === 'error'),
    list: () => SEVERITIES.flatMap((severity) => [...found.values()].filter((p) => p.severity === severity)),
  };
}

/** A thrown error as a problem of the plan. @throws the cancellation itself, which is no problem */
export function thrownProblem(thrown: unknown): PlanProblem {
  if (thrown instanceof AmalgamError && thrown.code === 'Canceled') throw thrown;
  const { code, message, hint } = errorReport(thrown);
  return { severity: 'error', code, message, remedy: hint };
}

/** `a, b and 3 more`: names for a sentence, at most `most` of them. */
export function nameSome(names: readonly string[], most = 3): string {
  if (names.length <= most) return names.join(', ');
  return `${names.slice(0, most).join(', ')} and ${names.length - most} more`;
}

/** What is to be known of models whose plan is clean, as sentences. */
export function warningsOf(problems: readonly PlanProblem[]): string[] {
  return problems.flatMap(({ severity, message, remedy }) =>
    severity === 'warning' ? [`Warning: ${message} ${remedy}`] : [],
  );
}
