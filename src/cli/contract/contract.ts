import { join } from 'node:path';
import { Command } from 'commander';
import { packageRoot } from '../../package-root.ts';
import { collect } from '../sandbox-options.ts';
import { readReportTargets, writeReports } from './report-options.ts';

const formats = ['text', 'json', 'markdown', 'junit', 'sarif'] as const;

const examples = `
Examples:
  $ git show v1.0.0:openapi.json > old.json
  $ custos contract diff old.json openapi.json
  $ custos contract diff old.yaml new.yaml --format markdown=changes.md \\
      --format text
  $ custos contract diff old.json
        with the contract of this version of custos

Exit codes: 0 nothing breaks, 1 breaking changes, 2 invalid usage, 3 a document
cannot be read.`;

/** `custos contract`: questions about OpenAPI documents. */
export function contractCommand(): Command {
  return new Command('contract').description('compare OpenAPI documents').addCommand(diffCommand());
}

function diffCommand(): Command {
  return new Command('diff')
    .description(
      'report what changed from one OpenAPI 3.1 document to another, and what of it breaks clients',
    )
    .argument('<old>', 'JSON or YAML file')
    .argument('[new]', 'JSON or YAML file (default: the contract of this version)')
    .option('--format <format[=file]>', `${formats.join(', ')}; repeatable (default: text)`, collect)
    .addHelpText('after', examples)
    .action(async (oldFile: string, newFile: string | undefined, flags: { format?: string[] }) => {
      const targets = readReportTargets(flags.format ?? ['text'], formats);
      const file = newFile ?? join(packageRoot(), 'openapi', 'openapi.json');
      const [{ readContract }, { diffContracts }, { renderDiff }] = await Promise.all([
        import('../../contract/read-document.ts'),
        import('../../contract/diff/diff-contracts.ts'),
        import('../../contract/diff/render.ts'),
      ]);
      const changes = diffContracts(await readContract(oldFile), await readContract(file));
      writeReports(targets, (format) => renderDiff(format, changes, newFile ?? 'openapi/openapi.json'));
      if (changes.some(({ severity }) => severity === 'breaking')) process.exitCode = 1;
    });
}
