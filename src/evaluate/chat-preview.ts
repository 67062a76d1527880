/** A conversation rendered with the chat template that an output will have, before there is an output. */

import { renderGuarded } from '../foreign/foreign-text';
import type { Message } from '../formats/conversations';
import type { OpenModels } from '../host/models';
import type { Plan } from '../merge/plan/plan';
import { plannedChatTemplate } from './running-model';

/** A message of each role, and one to be answered; without a system message, which not every template takes. */
const CONVERSATION: Message[] = [
  { role: 'user', content: 'What is a merge?' },
  { role: 'assistant', content: 'One model out of the weights of several.' },
  { role: 'user', content: 'Why?' },
];

/**
 * The conversation as the planned output will read it, up to where it answers; null where it has no chat template.
 * @param plan a clean one
 * @throws AmalgamError `TokenizerInvalid` for a template that does not render, and what reading the files throws
 */
export async function chatPreview(
  plan: Plan,
  models: OpenModels,
  signal: AbortSignal,
): Promise<string | null> {
  const chat = await plannedChatTemplate(plan, models, signal);
  return chat ? (await renderGuarded(chat, [CONVERSATION], true, signal))[0]! : null;
}
