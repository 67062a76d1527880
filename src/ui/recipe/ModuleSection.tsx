import { type FormEvent, useMemo, useState } from 'react';
import { formatCount, formatCounted } from '../../formats/quantity';
import type { PlanTensor } from '../../reports/plan';
import { Button, LinkButton, PlusIcon } from '../parts/Button';
import { Chip, choices, Select, Toggle } from '../parts/fields';
import type { RecipeState } from '../state/recipe-state';
import { editRecipe } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

// Which modules are merged, as the panel shows it: groups and modules of the plan, from and to a recipe's `exclude`. Pure.

interface ModuleGroup {
  id: GroupId;
  label: string;
  /** Pattern that means all of the group and nothing else, where there is one. */
  pattern: string | null;
  modules: ModuleChoice[];
}

interface ModuleChoice {
  /** `mlp.down_proj`, or the whole name of a tensor outside the layers. */
  pattern: string;
  tensors: number;
  /** How many of them the plan leaves as the base has them. */
  leftOut: number;
}

type GroupId = 'attention' | 'mlp' | 'norms' | 'embeddings' | 'others';

const GROUPS: readonly { id: GroupId; label: string; of: RegExp }[] = [
  { id: 'attention', label: 'Attention', of: /attn|attention(?!_(layer)?norm|_layernorm)/ },
  { id: 'mlp', label: 'MLP', of: /mlp|feed_?forward(?!_layernorm)|ffn(?!_norm)|experts|moe/ },
  { id: 'norms', label: 'Norms', of: /norm|(^|\.)ln_/ },
  { id: 'embeddings', label: 'Embedding, head', of: /embed|wte|wpe|lm_head/ },
];

/** The groups that the plan's tensors fall into, in the order of the model; groups without tensors are left away. */
export function moduleGroups(tensors: readonly PlanTensor[]): ModuleGroup[] {
  const groups = new Map<GroupId, Map<string, ModuleChoice>>();
  for (const { name, layer, module, leftOut } of tensors) {
    const id = groupOf(layer === null ? name : module);
    const modules = groups.get(id) ?? new Map<string, ModuleChoice>();
    groups.set(id, modules);
    // outside the layers a module's name may be part of others' (`norm`): there the tensor's own name is the pattern
    const pattern = layer === null ? name : module;
    const known = modules.get(pattern) ?? { pattern, tensors: 0, leftOut: 0 };
    known.tensors += 1;
    known.leftOut += leftOut ? 1 : 0;
    modules.set(pattern, known);
  }
  const names = tensors.map((t) => t.name);
  return [...GROUPS, { id: 'others' as const, label: 'Others' }].flatMap(({ id, label }) => {
    const modules = [...(groups.get(id)?.values() ?? [])];
    return modules.length === 0 ? [] : [{ id, label, modules, pattern: sharedPattern(modules, names) }];
  });
}

/** Is a module switched off by a pattern of the panel? */
export function isOff(exclude: readonly string[], group: ModuleGroup, module: ModuleChoice): boolean {
  return exclude.includes(module.pattern) || (group.pattern !== null && exclude.includes(group.pattern));
}

/** Switches modules of a group on or off, in as few patterns as possible; patterns of other origin stay. */
export function switchModules(
  recipe: RecipeState,
  group: ModuleGroup,
  modules: readonly ModuleChoice[],
  on: boolean,
): RecipeState {
  const off = group.modules.filter((m) => (modules.includes(m) ? !on : isOff(recipe.exclude, group, m)));
  const own = new Set([group.pattern, ...group.modules.map((m) => m.pattern)]);
  const others = recipe.exclude.filter((pattern) => !own.has(pattern));
  const whole = off.length === group.modules.length && group.pattern !== null;
  const said = whole ? [group.pattern as string] : off.map((m) => m.pattern);
  return { ...recipe, exclude: [...others, ...said] };
}

/** Patterns of the recipe that no switch of the panel stands for. */
export function otherPatterns(exclude: readonly string[], groups: readonly ModuleGroup[]): string[] {
  const known = new Set(groups.flatMap((g) => [g.pattern, ...g.modules.map((m) => m.pattern)]));
  return exclude.filter((pattern) => !known.has(pattern));
}

function groupOf(module: string): GroupId {
  return GROUPS.find(({ of }) => of.test(module))?.id ?? 'others';
}

/** The first part of the modules' names (`self_attn.`), if they share it and no other tensor has it in its name. */
function sharedPattern(modules: readonly ModuleChoice[], names: readonly string[]): string | null {
  const [first = '', ...rest] = modules.map((m) => m.pattern.split('.')[0] ?? '');
  if (modules.length < 2 || rest.some((part) => part !== first)) return null;
  const pattern = `${first}.`;
  const meant = modules.reduce((sum, m) => sum + m.tensors, 0);
  return names.filter((name) => name.includes(pattern)).length === meant ? pattern : null;
}

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
    <details className="folded modules-fold">
      <summary className="small quiet">
        Modules:{' '}
        {all
          ? 'all merged'
          : `${formatCounted(left, 'tensor')} of ${formatCount(tensors.length)} stay as in the base`}
      </summary>
      {all ? null : (
        <LinkButton onClick={() => editRecipe(studio, (r) => ({ ...r, include: [], exclude: [] }))}>
          merge all
        </LinkButton>
      )}
      <ul className="modules ruled">
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
    </details>
  );
}

function Group({ group, exclude }: { group: ModuleGroup; exclude: readonly string[] }) {
  const studio = useStudio();
  const { label, modules } = group;
  const off = modules.filter((m) => isOff(exclude, group, m)).length;
  const turn = (some: ModuleGroup['modules'], on: boolean) =>
    editRecipe(studio, (r) => switchModules(r, group, some, on));
  return (
    <li className="relative">
      <details className="module-group">
        <summary>
          <span>{label}</span>{' '}
          <span className="small quiet">
            {off === 0
              ? formatCounted(modules.length, 'module')
              : off === modules.length
                ? 'as in the base'
                : `${modules.length - off} of ${modules.length} merged`}
          </span>
        </summary>
        <ul className="grid scroll module-list">
          {modules.map((module) => (
            <li key={module.pattern} className="row">
              <span className="mono small truncate grow" title={module.pattern}>
                {module.pattern}
              </span>
              <span className="small quiet numeric">
                {module.leftOut > 0 && module.leftOut < module.tensors
                  ? `${module.tensors - module.leftOut} of ${module.tensors}`
                  : module.tensors > 1
                    ? `× ${module.tensors}`
                    : ''}
              </span>
              <Toggle
                aria-label={`Merge ${module.pattern}`}
                checked={!isOff(exclude, group, module)}
                onCheckedChange={(on) => turn([module], on)}
              />
            </li>
          ))}
        </ul>
      </details>
      <Toggle
        aria-label={`Merge ${label}`}
        checked={off < modules.length}
        mixed={off > 0}
        onCheckedChange={(on) => turn(modules, on)}
      />
    </li>
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
      className="row wrap tight"
      aria-label={word === 'only' ? 'Only these are merged' : 'These are not merged'}
    >
      {patterns.map((pattern) => (
        <li key={pattern}>
          <Chip name={`the pattern ${pattern}`} on onRemove={() => onRemove(pattern)}>
            <span className="faint">{word}</span>
            <code className="truncate">{pattern}</code>
          </Chip>
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
    <form className="row tight pattern-form" onSubmit={add}>
      <Select<typeof kind>
        aria-label="What the pattern does"
        value={kind}
        options={choices({ exclude: 'not', include: 'only' })}
        onChange={setKind}
      />
      <input
        className="field mono grow"
        aria-label="Pattern of tensor names"
        placeholder="layers.0. or *.q_proj.weight"
        spellCheck={false}
        autoComplete="off"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <Button
        icon={PlusIcon}
        type="submit"
        aria-label="Add the pattern"
        why={pattern === '' ? 'Type a part of a tensor’s name, or a pattern with * and ?.' : null}
      />
    </form>
  );
}
