/** Names of the tools' calls, apart from their rows: the worker needs no words of their forms before its first plan. */
import type { ToolCall, ToolId } from '.';

export const TOOL_CALLS: { readonly [Id in ToolId]: readonly ToolCall[] } = {
  difference: ['compare'],
  lora: ['measureLora', 'reshapeLora', 'extractLora'],
  collapse: ['measureLayers', 'collapse'],
  convert: ['convert'],
  moe: ['planMoe', 'writeMoe'],
  transplant: ['planTransplant', 'transplant'],
};
