import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

// Writes the types of `custos/testing` into `dist/types`: only the declarations to which its entries refer.

const root = join(import.meta.dirname, '..');
const out = join(root, 'dist', 'types');
const entries = ['testing', 'fixtures', 'matchers', 'jest', 'reporter'].map(
  (name) => `src/testing/${name}.ts`,
);

mkdirSync(join(root, 'dist'), { recursive: true });
const folder = mkdtempSync(join(root, 'dist', 'types-'));
try {
  const settings = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: {
      ...{ noEmit: false, declaration: true, emitDeclarationOnly: true },
      ...{ rootDir: root, outDir: join(folder, 'all') },
    },
    // The entries reach a module of JavaScript, whose types no import names.
    files: [...entries, 'src/engine/crypto/secp256k1-lib.d.ts'].map((entry) => join(root, entry)),
    include: [],
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(settings));
  execFileSync(join(root, 'node_modules', '.bin', 'tsc'), ['-p', folder], { stdio: 'inherit' });
  rmSync(out, { recursive: true, force: true });
  const written = new Set<string>();
  for (const entry of entries) copy(join(folder, 'all', declarationOf(entry)), written);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/**
 * Copies a declaration and the declarations that it imports. Types of packages are refused, because users do not have
 * them.
 */
function copy(file: string, written: Set<string>): void {
  if (written.has(file)) return;
  written.add(file);
  const imported: string[] = [];
  const source = readFileSync(file, 'utf8');
  const outside = /(?:^(?:import|export) (?:.* from )?|\bimport\()['"](?!node:|\.)[^'"]+/m.exec(source)?.[0];
  if (outside !== undefined) {
    throw new Error(
      `${relative(join(folder, 'all'), file)}: expected no types of packages, got \`${outside}\``,
    );
  }
  // Packages contain no `.ts` files, so the extension is replaced.
  const text = source.replaceAll(/(['"])(\.{1,2}\/[^'"]+)\.ts\1/g, (_, quote, path) => {
    imported.push(join(dirname(file), `${path}.d.ts`));
    return `${quote}${path}.js${quote}`;
  });
  const target = join(out, relative(join(folder, 'all'), file));
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, text);
  for (const next of imported) copy(next, written);
}

function declarationOf(file: string): string {
  return file.replace(/\.ts$/, '.d.ts');
}
