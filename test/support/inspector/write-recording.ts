import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder, waitFor } from '../run-custos.ts';

// Writes the recording that the README shows, docs/screenshots/terminal.svg: runs the commands below against a sandbox,
// each in a terminal of its own (`script` of util-linux), and draws what they print. Nothing in it is written by hand
// except the commands and their comments.
//
// node test/support/inspector/write-recording.ts

const root = join(import.meta.dirname, '..', '..', '..');
const [COLUMNS, ROWS] = [104, 25];
const CHARACTER = { width: 8.4, height: 20 };
const SECONDS = 40;

/** Commands between which the screen is cleared, with the seconds for which each scene is shown. */
const scenes = [
  {
    seconds: 8,
    comment: 'A wallet API on your laptop: no account, no network',
    commands: ['npx custos sandbox --seed demo --seed-data --data .custos'],
  },
  {
    seconds: 9,
    comment: "Alice's key signs with Alice's wallet; Bob's does not",
    commands: [
      'npx custos call walletRpc ext_wal_alice --sign alice method=personal_sign params.message=Hello params.encoding=utf-8',
      'npx custos call walletRpc ext_wal_alice --sign bob method=personal_sign params.message=Hello params.encoding=utf-8 >/dev/null 2>&1; npx custos why',
    ],
  },
  {
    seconds: 9,
    comment: 'Money moves on simulated chains, by a clock that you control',
    commands: [
      'npx custos call transferFromWallet ext_wal_acme-ethereum source.asset=usdc source.chain=base source.amount=25 destination.address=0x742d35Cc6634C0532925a3b844Bc9e7595f0bEb0 | head -8',
      'npx custos clock advance 1h',
      "npx custos events list --events 'wallet_action.*'",
    ],
  },
  {
    seconds: 7,
    comment: 'The next three payouts fail: does your code handle it?',
    commands: [
      'npx custos faults add error --operation transferFromWallet --code internal_error --count 3',
      'npx custos call transferFromWallet ext_wal_acme-ethereum source.asset=usdc source.chain=base source.amount=25 destination.address=0x742d35Cc6634C0532925a3b844Bc9e7595f0bEb0',
    ],
  },
  {
    seconds: 7,
    comment: 'And what have your tests used of the contract?',
    commands: ['npx custos coverage'],
  },
] as const;

/** A part of a line in one color. */
interface Span {
  readonly text: string;
  readonly tone: string;
}

const tones: Readonly<Record<string, string>> = {
  1: 'bold',
  2: 'dim',
  31: 'red',
  32: 'green',
  33: 'yellow',
  36: 'cyan',
};

/** Splits what a command has printed into lines, broken at the width of the terminal. */
function linesOf(printed: string): Span[][] {
  const lines: Span[][] = [[]];
  let tone = '';
  let column = 0;
  const newLine = (): void => {
    lines.push([]);
    column = 0;
  };
  // biome-ignore lint/suspicious/noControlCharactersInRegex: terminals are controlled by them.
  for (const part of printed.split(/(\u001b\[[0-9;?]*[a-zA-Z]|\r?\n)/)) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: as above.
    const [, codes, kind] = /^\u001b\[([0-9;?]*)([a-zA-Z])$/.exec(part) ?? [];
    if (kind !== undefined) {
      if (kind === 'm') tone = tones[codes!] ?? '';
    } else if (/^\r?\n$/.test(part)) newLine();
    else {
      for (let rest = part.replaceAll('\r', ''); rest !== ''; ) {
        if (column === COLUMNS) newLine();
        const text = rest.slice(0, COLUMNS - column);
        lines.at(-1)!.push({ text, tone });
        column += text.length;
        rest = rest.slice(text.length);
      }
    }
  }
  if (lines.at(-1)!.length === 0) lines.pop();
  return lines;
}

/** Runs a command in a terminal and returns what it prints. */
async function inTerminal(command: string, folder: string): Promise<string> {
  const env = { ...process.env, TERM: 'xterm-256color', PATH: `${join(folder, 'bin')}:${process.env.PATH}` };
  // A refused request is a part of the recording.
  const sized = `stty cols ${COLUMNS} rows ${ROWS}; ${command}; true`;
  const { stdout } = await promisify(execFile)('script', ['-qec', sized, '/dev/null'], { cwd: folder, env });
  return stdout;
}

/** A command, and what it printed. */
interface Played {
  readonly command: string;
  readonly lines: Span[][];
}

async function play(folder: string): Promise<Played[][]> {
  const bin = join(folder, 'node_modules', '.bin');
  mkdirSync(bin, { recursive: true });
  mkdirSync(join(folder, 'bin'));
  // As npm links an installed package, so that texts name `npx custos`.
  symlinkSync(join(root, 'dist', 'custos.js'), join(bin, 'custos'));
  const node = process.execPath;
  writeFileSync(
    join(folder, 'bin', 'npx'),
    `#!/bin/sh\nshift\nexec '${node}' '${join(bin, 'custos')}' "$@"\n`,
    {
      mode: 0o755,
    },
  );
  const banner = join(folder, 'banner.txt');
  const [start, ...others] = scenes;
  const [startCommand] = start.commands;
  const env = { ...process.env, TERM: 'xterm-256color', PATH: `${join(folder, 'bin')}:${process.env.PATH}` };
  const sized = `stty cols ${COLUMNS} rows ${ROWS}; ${startCommand} --ready-file ready.json`;
  const sandbox = spawn('script', ['-qefc', sized, banner], { cwd: folder, env, stdio: 'ignore' });
  try {
    await waitFor(
      () => existsSync(join(folder, 'ready.json')) && readFileSync(banner, 'utf8').includes('Ctrl-C'),
    );
    const [, ...printed] = readFileSync(banner, 'utf8').split('\n');
    const folderless = printed.join('\n').replaceAll(`${folder}/`, '');
    const played: Played[][] = [[{ command: startCommand, lines: linesOf(folderless) }]];
    for (const { commands } of others) {
      const scene: Played[] = [];
      for (const command of commands) {
        const text = (await inTerminal(command, folder)).replaceAll(`${folder}/`, '');
        scene.push({
          command: command.replace(' >/dev/null 2>&1', ''),
          lines: linesOf(text),
        });
      }
      played.push(scene);
    }
    return played;
  } finally {
    const { pid } = JSON.parse(readFileSync(join(folder, 'ready.json'), 'utf8')) as { pid: number };
    process.kill(pid, 'SIGTERM');
    sandbox.kill();
  }
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Draws the scenes as one SVG. Lines appear by CSS, so that no script and no player is needed. */
function draw(played: readonly Played[][]): string {
  const rules: string[] = [];
  const body: string[] = [];
  const percent = (second: number): string => ((100 * second) / SECONDS).toFixed(2);
  const shown = (name: string, from: number, to: number): void => {
    rules.push(
      `@keyframes ${name}{0%,${percent(from)}%{visibility:hidden}${percent(from + 0.01)}%,${percent(to)}%{visibility:visible}${percent(to + 0.01)}%,100%{visibility:hidden}}`,
      `#${name}{animation:${name} ${SECONDS}s infinite}`,
    );
  };
  let begin = 0;
  for (const [at, scene] of played.entries()) {
    const { seconds, comment } = scenes[at]!;
    const end = begin + seconds - 0.02;
    const rows: { readonly spans: Span[]; readonly second: number }[] = [
      { spans: [{ text: `# ${comment}`, tone: 'dim' }], second: begin },
    ];
    let second = begin + 0.6;
    // Half of the time is for reading.
    const step = (seconds * 0.4) / scene.length;
    for (const { command, lines } of scene) {
      const typed = linesOf(`$ ${command}`);
      for (const spans of typed)
        rows.push({ spans: spans.map(({ text }) => ({ text, tone: 'bold' })), second });
      for (const spans of lines) rows.push({ spans, second: second + 0.7 });
      rows.push({ spans: [], second: second + 0.7 });
      second += step;
    }
    for (const [row, { spans, second: from }] of rows.slice(0, ROWS).entries()) {
      if (spans.length === 0) continue;
      const y = 60 + row * CHARACTER.height;
      const parts = spans.map(({ text, tone }) => {
        const kind = tone === '' ? '' : ` class="${tone}"`;
        return `<tspan${kind}>${escaped(text)}</tspan>`;
      });
      const name = `l${at}-${row}`;
      shown(name, from, end);
      body.push(`<text id="${name}" x="16" y="${y}" xml:space="preserve">${parts.join('')}</text>`);
    }
    begin += seconds;
  }
  const width = Math.round(COLUMNS * CHARACTER.width + 32);
  const height = 60 + ROWS * CHARACTER.height;
  // Who prefers no motion sees the second scene.
  const still = `@media (prefers-reduced-motion:reduce){text[id]{animation:none!important;visibility:hidden}text[id^=l1-]{visibility:visible}}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="Recording of a terminal: a sandbox starts, signs, refuses and explains, transfers money, fails on purpose and reports coverage">
<style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d6deeb}
.bold{fill:#fff;font-weight:600}.dim{fill:#8b98ab}.red{fill:#ff8a80}.green{fill:#7ddc9f}.yellow{fill:#ffd479}.cyan{fill:#7fdbff}
${rules.join('\n')}
${still}
</style>
<rect width="${width}" height="${height}" rx="10" fill="#111827"/>
<circle cx="22" cy="20" r="6" fill="#ff5f57"/><circle cx="42" cy="20" r="6" fill="#febc2e"/><circle cx="62" cy="20" r="6" fill="#28c840"/>
${body.join('\n')}
</svg>
`;
}

const folder = temporaryFolder();
try {
  writeFileSync(join(root, 'docs', 'screenshots', 'terminal.svg'), draw(await play(folder)));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
