import attention from '../../../shaders/lib/attention.wgsl?raw';
import exact4 from '../../../shaders/lib/exact4.wgsl?raw';
import factorOther from '../../../shaders/lib/factor-other.wgsl?raw';
import factorOwn from '../../../shaders/lib/factor-own.wgsl?raw';
import half from '../../../shaders/lib/half.wgsl?raw';
import inputGram from '../../../shaders/lib/input-gram.wgsl?raw';
import maskedRows from '../../../shaders/lib/masked-rows.wgsl?raw';
import matmul from '../../../shaders/lib/matmul.wgsl?raw';
import norm from '../../../shaders/lib/norm.wgsl?raw';
import pack from '../../../shaders/lib/pack.wgsl?raw';
import philox from '../../../shaders/lib/philox.wgsl?raw';
import rowGroup from '../../../shaders/lib/row-group.wgsl?raw';
import rowLine from '../../../shaders/lib/row-line.wgsl?raw';
import softmax from '../../../shaders/lib/softmax.wgsl?raw';
import special from '../../../shaders/lib/special.wgsl?raw';
import stamp from '../../../shaders/lib/stamp.wgsl?raw';
import stored from '../../../shaders/lib/stored.wgsl?raw';
import triangular from '../../../shaders/lib/triangular.wgsl?raw';
import weightBf16 from '../../../shaders/lib/weight-bf16.wgsl?raw';
import weightF16 from '../../../shaders/lib/weight-f16.wgsl?raw';
import weightF32 from '../../../shaders/lib/weight-f32.wgsl?raw';
import { AmalgamError } from '../../errors';
import type { Kernel } from '../kernel';

const LIBRARIES = {
  exact4,
  half,
  matmul,
  pack,
  philox,
  special,
  stored,
  weightF32,
  weightF16,
  weightBf16,
  attention,
  norm,
  softmax,
  inputGram,
  triangular,
  factorOwn,
  factorOther,
  maskedRows,
  rowGroup,
  rowLine,
};

export type Library = keyof typeof LIBRARIES;

/** A kernel's complete source: its parameters as declared, the stamp library, the libraries it names and its own file. */
export function wgslOf({ params, libraries, wgsl }: Pick<Kernel, 'params' | 'libraries' | 'wgsl'>): string {
  return [uniform(params), stamp, ...libraries.map((name) => LIBRARIES[name]), wgsl].join('\n');
}

function uniform(params: Readonly<Record<string, string>>): string {
  const fields = Object.entries({ stamp: 'vec4<u32>', ...params }).map(
    ([name, type]) => `  ${name}: ${type},\n`,
  );
  return `struct Params {\n${fields.join('')}}\n\n@group(0) @binding(0) var<uniform> params: Params;\n`;
}

interface Compiled {
  pipeline: GPUComputePipeline;
  layout: GPUBindGroupLayout;
}

/** Compiled kernels by id. Compilation errors surface at the next read, with the compiler's lines. */
export class Pipelines {
  private readonly compiled = new Map<string, Compiled>();
  private problems: Promise<AmalgamError | null>[] = [];

  constructor(
    private readonly device: GPUDevice,
    private readonly adapter: string,
  ) {}

  get(kernel: Kernel): Compiled {
    let compiled = this.compiled.get(kernel.id);
    if (!compiled) {
      compiled = this.compile(kernel);
      this.compiled.set(kernel.id, compiled);
    }
    return compiled;
  }

  /** Outcomes of the compilations since the last call. */
  takeProblems(): Promise<AmalgamError | null>[] {
    const problems = this.problems;
    this.problems = [];
    return problems;
  }

  private compile(kernel: Kernel): Compiled {
    const { device } = this;
    if (kernel.wgsl === '') throw new Error(`${kernel.id} has no GPU version`);
    device.pushErrorScope('validation');
    const module = device.createShaderModule({ label: kernel.id, code: wgslOf(kernel) });
    const layout = device.createBindGroupLayout({
      label: kernel.id,
      entries: [
        {
          binding: 0,
          visibility: GPUShaderStage.COMPUTE,
          buffer: { type: 'uniform', hasDynamicOffset: true, minBindingSize: paramsSize(kernel) },
        },
        ...Object.values(kernel.buffers).map((access, i) => ({
          binding: i + 1,
          visibility: GPUShaderStage.COMPUTE,
          buffer: { type: access === 'read' ? 'read-only-storage' : 'storage' } as const,
        })),
        { binding: 9, visibility: GPUShaderStage.COMPUTE, buffer: { type: 'storage' } },
      ],
    });
    const pipeline = device.createComputePipeline({
      label: kernel.id,
      layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      compute: { module, entryPoint: 'main' },
    });
    this.problems.push(this.check(kernel, module, device.popErrorScope()));
    return { pipeline, layout };
  }

  private async check(
    kernel: Kernel,
    module: GPUShaderModule,
    scope: Promise<GPUError | null>,
  ): Promise<AmalgamError | null> {
    const error = await scope;
    if (!error) return null;
    this.compiled.delete(kernel.id);
    const { messages } = await module.getCompilationInfo();
    const source = wgslOf(kernel).split('\n');
    const lines = messages
      .filter((m) => m.type === 'error')
      .map((m) => `${m.lineNum}:${m.linePos} ${m.message}\n    ${source[m.lineNum - 1] ?? ''}`);
    return new AmalgamError(
      'GpuCompile',
      `The kernel ${kernel.id} does not compile on ${this.adapter}: ${lines.join('\n') || error.message}`,
      'Nothing was written. Choose the CPU engine, and please report this with the adapter name.',
    );
  }
}

function paramsSize(kernel: Kernel): number {
  return Math.ceil((4 + Object.keys(kernel.params).length) / 4) * 16;
}
