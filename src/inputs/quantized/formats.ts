/** The formats of weights in eight bits and fewer that are read as the weights they stand for. */
import { eightBits, fourBits } from './bitsandbytes';
import type { QuantizedFormat } from './format';
import { fp8 } from './fp8';
import { awq, gptq } from './gptq';
import { mxfp4 } from './mxfp4';
import { integers, mlx, packed } from './rows';

export const formats: Readonly<Record<string, QuantizedFormat>> = {
  ...{ fp8, mxfp4, fourBits, eightBits, gptq, awq, packed, integers, mlx },
};
