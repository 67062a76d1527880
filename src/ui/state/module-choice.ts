/** Which modules are merged, as the panel shows it: groups and modules of the plan, from and to a recipe's `exclude`. Pure. */
import type { PlanTensor } from '../../reports/plan';
import type { RecipeState } from './recipe-state';

export interface ModuleGroup {
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

/** Switches modules of a group on or off, in as few patterns as say it; patterns of other origin stay. */
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
