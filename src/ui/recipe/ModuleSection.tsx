import { Switch } from 'radix-ui';
import { type FormEvent, useMemo, useState } from 'react';
import { formatCount, formatCounted } from '../../formats/quantity';
import type { PlanTensor } from '../../reports/plan';
import { Button } from '../parts/Button';
import { CloseIcon, PlusIcon } from '../parts/icons';
import { Section } from '../parts/Section';
import { Select } from '../parts/Select';
import { isOff, type ModuleGroup, moduleGroups, otherPatterns, switchModules } from '../state/module-choice';
import { editRecipe } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

const NONE: readonly PlanTensor[] = [];

/** Which modules are merged; the others keep the base's bytes. By group, by module, or by a pattern of one's own. */
export function ModuleSection() {
  const studio = useStudio();
  const tensors = useStudioState((s) => s.plan.report?.tensors ?? NONE);
  const include = useStudioState((s) => s.recipe.include);
  const exclude = useStudioState((s) => s.recipe.exclude);
  const groups = useMemo(() => moduleGroups(tensors), [tensors]);
  const left = useMemo(() => tensors.filter((t) => t.leftOut).length, [tensors]);
  if (groups.length === 0 && include.length + exclude.length === 0) return null;
  const all = include.length + exclude.length === 0;
  return (
    <Section
      title="Modules"
      aside={
        all ? (
          <span className="small quiet">all merged</span>
        ) : (
          <button
            type="button"
            className="link"
            onClick={() => editRecipe(studio, (r) => ({ ...r, include: [], exclude: [] }))}
          >
            merge all
          </button>
        )
      }
    >
      <ul className="modules">
        {groups.map((group) => (
          <Group key={group.id} group={group} exclude={exclude} />
        ))}
      </ul>
      <Patterns
        word="only"
        patterns={include}
        onRemove={(pattern) =>
          editRecipe(studio, (r) => ({ ...r, include: r.include.filter((p) => p !== pattern) }))
        }
      />
      <Patterns
        word="not"
        patterns={otherPatterns(exclude, groups)}
        onRemove={(pattern) =>
          editRecipe(studio, (r) => ({ ...r, exclude: r.exclude.filter((p) => p !== pattern) }))
        }
      />
      <NewPattern />
      {left > 0 ? (
        <p className="small quiet" role="status">
          {formatCounted(left, 'tensor')} of {formatCount(tensors.length)} stay as in the base.
        </p>
      ) : null}
    </Section>
  );
}

function Group({ group, exclude }: { group: ModuleGroup; exclude: readonly string[] }) {
  const studio = useStudio();
  const { label, modules } = group;
  const off = modules.filter((m) => isOff(exclude, group, m)).length;
  const turn = (some: ModuleGroup['modules'], on: boolean) =>
    editRecipe(studio, (r) => switchModules(r, group, some, on));
  return (
    <li>
      <details className="module-group">
        <summary>
          <span>{label}</span>
          <span className="small quiet">
            {off === 0
              ? formatCounted(modules.length, 'module')
              : off === modules.length
                ? 'as in the base'
                : `${modules.length - off} of ${modules.length} merged`}
          </span>
        </summary>
        <ul className="module-list">
          {modules.map((module) => (
            <li key={module.pattern} className="row">
              <span className="mono small truncate" title={module.pattern}>
                {module.pattern}
              </span>
              <span className="small quiet numeric">
                {module.leftOut > 0 && module.leftOut < module.tensors
                  ? `${module.tensors - module.leftOut} of ${module.tensors}`
                  : module.tensors > 1
                    ? `× ${module.tensors}`
                    : ''}
              </span>
              <ModuleSwitch
                label={`Merge ${module.pattern}`}
                on={!isOff(exclude, group, module)}
                onChange={(on) => turn([module], on)}
              />
            </li>
          ))}
        </ul>
      </details>
      <ModuleSwitch
        label={`Merge ${label}`}
        on={off < modules.length}
        mixed={off > 0}
        onChange={(on) => turn(modules, on)}
      />
    </li>
  );
}

interface ModuleSwitchProps {
  label: string;
  on: boolean;
  mixed?: boolean;
  onChange(on: boolean): void;
}

function ModuleSwitch({ label, on, mixed, onChange }: ModuleSwitchProps) {
  return (
    <Switch.Root
      className="switch"
      checked={on}
      onCheckedChange={onChange}
      aria-label={label}
      data-mixed={(on && mixed) || undefined}
    >
      <Switch.Thumb className="switch-thumb" />
    </Switch.Root>
  );
}

interface PatternsProps {
  /** `only` or `not`. */
  word: string;
  patterns: readonly string[];
  onRemove(pattern: string): void;
}

function Patterns({ word, patterns, onRemove }: PatternsProps) {
  if (patterns.length === 0) return null;
  return (
    <ul
      className="row wrap tags"
      aria-label={word === 'only' ? 'Only these are merged' : 'These are not merged'}
    >
      {patterns.map((pattern) => (
        <li key={pattern} className="tag pattern">
          <span className="faint">{word}</span>
          <code className="truncate">{pattern}</code>
          <button
            type="button"
            className="pattern-remove"
            aria-label={`Remove the pattern ${pattern}`}
            onClick={() => onRemove(pattern)}
          >
            <CloseIcon />
          </button>
        </li>
      ))}
    </ul>
  );
}

/** A pattern typed by hand: part of a name, or a glob for all of it. */
function NewPattern() {
  const studio = useStudio();
  const [text, setText] = useState('');
  const [kind, setKind] = useState<'exclude' | 'include'>('exclude');
  const pattern = text.trim();
  const add = (event: FormEvent) => {
    event.preventDefault();
    if (pattern === '') return;
    editRecipe(studio, (r) => (r[kind].includes(pattern) ? r : { ...r, [kind]: [...r[kind], pattern] }));
    setText('');
  };
  return (
    <form className="row pattern-form" onSubmit={add}>
      <Select<typeof kind>
        aria-label="What the pattern does"
        value={kind}
        options={[
          { value: 'exclude', label: 'not' },
          { value: 'include', label: 'only' },
        ]}
        onChange={setKind}
      />
      <input
        className="field mono"
        aria-label="Pattern of tensor names"
        placeholder="layers.0. or *.q_proj.weight"
        spellCheck={false}
        autoComplete="off"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <Button
        iconOnly
        type="submit"
        aria-label="Add the pattern"
        why={pattern === '' ? 'Type a part of a tensor’s name, or a pattern with * and ?.' : null}
      >
        <PlusIcon />
      </Button>
    </form>
  );
}
