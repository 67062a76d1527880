/** Configs of the output with the special tokens that its new tokenizer has. */
import { TOKEN_FIELDS } from '../../formats/chat-template';
import { editJsonObject, type JsonEdit } from '../../formats/json-edit';
import { parseModelConfig } from '../../formats/model-config';
import { isJsonNumber, type JsonObject, type JsonValue } from '../../formats/strict-json';
import type { Checkpoint } from '../../inputs/checkpoint';
import type { Plan } from '../../merge/plan/plan';
import { withoutRecipe } from '../write-plan';
import type { Spelling } from './spelling';

/**
 * The plan with the donor's ids of special tokens, as its config names them, else its tokenizer; the ends of a text are in the plan
 * already. A role that only the model has a token for is left to nobody.
 *
 * @param said codes of problems that do not hold then
 */
export async function withRolesOf(
  plan: Plan,
  donor: Checkpoint,
  spelling: Spelling,
  said: readonly string[],
): Promise<Plan> {
  const ids = new Map<string, number>();
  for (const role of TOKEN_FIELDS.filter((name) => name !== 'eos_token')) {
    const key = `${role}_id`;
    const stated = statedId(donor.config?.raw, key);
    const found = stated ?? spelling.roles.get(role);
    if (found !== undefined) ids.set(key, found);
  }
  const extras = withoutRecipe(plan.extras).map((extra) => {
    const { path, content } = extra;
    if (!('text' in content) || !/^(?:generation_)?config\.json$/.test(path)) return extra;
    return { path, content: { text: withIds(content.text, path, ids) } };
  });
  return { ...plan, extras, problems: plan.problems.filter(({ code }) => !said.includes(code)) };
}

function statedId(raw: JsonObject | undefined, key: string): number | undefined {
  const inner = raw?.get('text_config');
  const value: JsonValue | undefined =
    (inner instanceof Map ? inner.get(key) : undefined) ?? raw?.get(key) ?? undefined;
  return isJsonNumber(value) ? Number(value.text) : undefined;
}

/** Every id that the config names already, at the top or in `text_config`; a generation config's, too. */
function withIds(text: string, fileName: string, ids: ReadonlyMap<string, number>): string {
  const { raw } = parseModelConfig(text, fileName);
  const own = (object: JsonObject) => new Map<string, JsonEdit>([...ids].filter(([key]) => object.has(key)));
  const inner = raw.get('text_config');
  const nested = inner instanceof Map ? own(inner) : new Map<string, JsonEdit>();
  const edits = own(raw);
  if (nested.size > 0) edits.set('text_config', (part) => editJsonObject(part, nested));
  return editJsonObject(text, edits);
}
