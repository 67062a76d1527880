/** Snippets that run a written output in each program that can, with its real names. */
import { longerThanRuns } from './model-card';
import { displayName } from './names';

export interface UseSnippet {
  /** The program. */
  title: string;
  language: 'python' | 'sh';
  code: string;
}

interface WrittenOutput {
  /** Its folder. */
  name: string;
  /** Whether the output has safetensors of a whole model. */
  model: boolean;
  /** Name of the GGUF file, where there is one. */
  gguf?: string;
  /** The base of an adapter, where the output is one. */
  base?: string;
  /** False where an adapter is written as GGUF alone. */
  peft?: boolean;
  /** Of an image model, or a LoRA of one: a file of its weights, and what it is. */
  image?: { file: string; of: 'LoRA' | 'checkpoint' | 'part' | 'pipeline' };
  /** Class name of its config (`LlamaForCausalLM`), or the task of an adapter; other classes than language models load as they are. */
  architecture?: string;
}

/** Placeholder for the base of an adapter, whose GGUF file the reader has. */
const BASE_GGUF = 'base.gguf';

/** The snippets of an output, to be run where its GGUF file or its folder lies, in the order in which they are of use. */
export function snippetsOf({
  model,
  gguf,
  base,
  peft,
  architecture,
  image,
  ...output
}: WrittenOutput): UseSnippet[] {
  const name = displayName(output.name, 200);
  if (image !== undefined) return imageSnippets(name, image);
  const writes = architecture === undefined || /CausalLM|CAUSAL_LM|LMHead/i.test(architecture);
  const auto = writes ? 'AutoModelForCausalLM' : 'AutoModel';
  const folder = quoted(`./${name}`);
  const snippets: UseSnippet[] = [];
  if (gguf !== undefined) {
    const file = shellWord(gguf);
    const ollama = shellWord(name.toLowerCase().replaceAll(/[^a-z0-9._-]+/g, '-'));
    const run = `ollama create ${ollama} -f Modelfile\nollama run ${ollama}`;
    if (base === undefined) {
      snippets.push(
        { title: 'llama.cpp', language: 'sh', code: `llama-cli -m ${file}` },
        { title: 'Ollama', language: 'sh', code: `echo ${shellWord(`FROM ./${gguf}`)} > Modelfile\n${run}` },
        { title: 'LM Studio', language: 'sh', code: `lms import ${file}` },
      );
    } else {
      // of the same base, in any type
      const lines = `FROM ./${BASE_GGUF}\nADAPTER ./${gguf}`;
      snippets.push(
        { title: 'llama.cpp', language: 'sh', code: `llama-cli -m ${BASE_GGUF} --lora ${file}` },
        { title: 'Ollama', language: 'sh', code: `printf '%s\\n' ${shellWord(lines)} > Modelfile\n${run}` },
      );
    }
  }
  if (model) {
    snippets.push({
      title: 'transformers',
      language: 'python',
      code: writes
        ? `from transformers import pipeline

pipe = pipeline("text-generation", ${folder}, dtype="auto")
print(pipe("Once upon a time", max_new_tokens=64)[0]["generated_text"])`
        : `from transformers import ${auto}

model = ${auto}.from_pretrained(${folder}, dtype="auto")`,
    });
    if (writes) {
      snippets.push({
        title: 'MLX',
        language: 'sh',
        code: `mlx_lm.convert --hf-path ${shellWord(`./${name}`)} --mlx-path ${shellWord(`./${name}-mlx`)} -q`,
      });
    }
  }
  if (base !== undefined && peft !== false) {
    const id = quoted(base === '' ? 'owner/the-model-it-was-trained-on' : base);
    snippets.push({
      title: 'PEFT',
      language: 'python',
      code: `from peft import PeftModel
from transformers import ${auto}

base = ${auto}.from_pretrained(${id}, dtype="auto")
model = PeftModel.from_pretrained(base, ${folder})`,
    });
  }
  return snippets;
}

/** Where ComfyUI looks for a file. */
const COMFYUI = { LoRA: 'loras', checkpoint: 'checkpoints', part: 'diffusion_models' };

function imageSnippets(name: string, { file, of }: NonNullable<WrittenOutput['image']>): UseSnippet[] {
  const folder = quoted(`./${name}`);
  const python = (code: string): UseSnippet => ({ title: 'diffusers', language: 'python', code });
  if (of === 'pipeline') {
    return [
      python(`from diffusers import DiffusionPipeline

pipe = DiffusionPipeline.from_pretrained(${folder}, torch_dtype="auto")`),
    ];
  }
  const [from, as] = [`./${name}/${file}`, `${name}.safetensors`].map(shellWord);
  return [
    ...(of === 'LoRA' ? [python(`pipe.load_lora_weights(${folder}, weight_name=${quoted(file)})`)] : []),
    { title: 'ComfyUI', language: 'sh', code: `cp ${from} ComfyUI/models/${COMFYUI[of]}/${as}` },
  ];
}

/** The snippets as a section of a model card. */
export function snippetSection(snippets: readonly UseSnippet[]): string {
  if (snippets.length === 0) return '';
  const parts = snippets.map(({ title, language, code }) => {
    const fence = longerThanRuns(code, 3);
    return `### ${title}\n\n${fence}${language}\n${code}\n${fence}\n`;
  });
  return `\n## Use it\n\n${parts.join('\n')}`;
}

/** A Python string. */
function quoted(text: string): string {
  return JSON.stringify(text);
}

/** A word of a shell, in quotes where it needs them. */
function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
