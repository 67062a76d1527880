/**
 * Counts which parts of our code an input reaches, for the fuzzer: the parsers are bundled with a counter at the beginning
 * of every function, branch, loop, case and right side of a logical operator. (`@jazzer.js/core` 4.0.0 would give the same;
 * its program needs a newer C library than Debian 12 has, and 2.1.0 is downloaded from elsewhere than npm when installed.)
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import ts from 'typescript';
import { build } from 'vite';
import { cpuKernels } from '../../assembly/vite-plugin.ts';
import type { FuzzTarget } from './fuzz-targets';

/** Where counters are put: what reads files of others. */
const COUNTED =
  /\/src\/(formats|dataset|gguf|adapters|inputs|models|recipe|sources|store|foreign|evaluate|tasks)\//;

export interface Counted {
  targets: FuzzTarget[];
  /** One count for each place in the code; set to 0 before an input. */
  counts: Uint8Array;
  /** Short texts and numbers that the parsers compare with: words for the fuzzer. */
  words: string[];
}

/** Bundles the fuzz targets with counters and loads them. */
export async function countedTargets(): Promise<Counted> {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const words = new Set<string>();
  let places = 0;
  const folder = mkdtempSync(join(root, 'node_modules/.cache', 'fuzz-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  await build({
    root,
    configFile: false,
    logLevel: 'error',
    plugins: [
      cpuKernels(),
      {
        name: 'counters',
        enforce: 'pre',
        transform(code, id) {
          if (!COUNTED.test(id) || !id.endsWith('.ts')) return undefined;
          const counted = withCounters(code, id, places, words);
          places = counted.places;
          return { code: counted.code, map: null };
        },
      },
      // files are read beside the module as it is in the sources
      {
        name: 'own-place',
        transform: (code, id) =>
          id.includes('/e2e/faults/')
            ? { code: code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href)), map: null }
            : undefined,
      },
    ],
    build: {
      ssr: true,
      outDir: folder,
      target: 'node20',
      rollupOptions: { input: { targets: join(root, 'e2e/faults/fuzz-targets.ts') } },
    },
  });
  const counts = new Uint8Array(places);
  (globalThis as { amalgamCounts?: Uint8Array }).amalgamCounts = counts;
  const { fuzzTargets } = await import(pathToFileURL(join(folder, 'targets.js')).href).catch(
    () => import(pathToFileURL(join(folder, 'targets.mjs')).href),
  );
  return { targets: fuzzTargets, counts, words: [...words] };
}

/** The code with a counter at every place, numbered from `first`; what it compares with goes into `words`. */
export function withCounters(
  code: string,
  fileName: string,
  first: number,
  words: Set<string>,
): { code: string; places: number } {
  let places = first;
  const source = ts.createSourceFile(fileName, code, ts.ScriptTarget.Latest, true);
  const { factory } = ts;
  const bump = () =>
    factory.createPostfixIncrement(
      factory.createElementAccessExpression(
        factory.createPropertyAccessExpression(factory.createIdentifier('globalThis'), 'amalgamCounts'),
        places++,
      ),
    );
  const marked = (expression: ts.Expression) =>
    factory.createParenthesizedExpression(factory.createComma(bump(), expression));
  const block = (statement: ts.Statement) =>
    factory.createBlock([
      factory.createExpressionStatement(bump()),
      ...(ts.isBlock(statement) ? statement.statements : [statement]),
    ]);
  const isLogical = (kind: ts.SyntaxKind) =>
    kind === ts.SyntaxKind.AmpersandAmpersandToken ||
    kind === ts.SyntaxKind.BarBarToken ||
    kind === ts.SyntaxKind.QuestionQuestionToken;
  const transformer: ts.TransformerFactory<ts.SourceFile> = (context) => {
    const visit = (node: ts.Node): ts.Node => {
      if (ts.isTypeNode(node) || ts.isImportDeclaration(node)) return node;
      if (ts.isStringLiteral(node) && node.text.length > 0 && node.text.length <= 24) words.add(node.text);
      const seen = ts.visitEachChild(node, visit, context);
      if (ts.isIfStatement(seen)) {
        const other = seen.elseStatement ? block(seen.elseStatement) : block(factory.createEmptyStatement());
        return factory.updateIfStatement(seen, seen.expression, block(seen.thenStatement), other);
      }
      if (ts.isConditionalExpression(seen)) {
        const { condition, questionToken, colonToken } = seen;
        return factory.updateConditionalExpression(
          seen,
          condition,
          questionToken,
          marked(seen.whenTrue),
          colonToken,
          marked(seen.whenFalse),
        );
      }
      if (ts.isBinaryExpression(seen) && isLogical(seen.operatorToken.kind)) {
        return factory.updateBinaryExpression(seen, seen.left, seen.operatorToken, marked(seen.right));
      }
      if (ts.isCaseClause(seen)) {
        const statements = [factory.createExpressionStatement(bump()), ...seen.statements];
        return factory.updateCaseClause(seen, seen.expression, statements);
      }
      if (ts.isForStatement(seen)) {
        const { initializer, condition, incrementor } = seen;
        return factory.updateForStatement(seen, initializer, condition, incrementor, block(seen.statement));
      }
      if (ts.isForOfStatement(seen)) {
        const { awaitModifier, initializer, expression } = seen;
        return factory.updateForOfStatement(
          seen,
          awaitModifier,
          initializer,
          expression,
          block(seen.statement),
        );
      }
      if (ts.isWhileStatement(seen)) {
        return factory.updateWhileStatement(seen, seen.expression, block(seen.statement));
      }
      return seen;
    };
    return (file) => ts.visitNode(file, visit) as ts.SourceFile;
  };
  const { transformed } = ts.transform(source, [transformer]);
  return { code: ts.createPrinter().printFile(transformed[0]!), places };
}
