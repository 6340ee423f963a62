/** A piece of source code. A piece without a kind is plain. */
export interface Token {
  readonly kind?: 'comment' | 'text' | 'word' | 'number';
  readonly text: string;
}

const words: Readonly<Record<string, string>> = {
  sh: 'export|then|else|fi|if|do|done|for|while|until|in',
  ts: 'async|await|class|const|else|export|for|function|from|if|import|interface|let|new|null|of|return|throw|true|false|try|catch|type|undefined|while',
  python:
    'as|assert|class|def|else|except|False|for|from|if|import|in|None|not|print|raise|return|True|try|with|while',
  go: 'const|defer|else|for|func|if|import|map|nil|package|range|return|struct|type|var',
  java: 'class|extends|final|for|if|import|new|null|public|return|static|throws|try|var|void|while',
  yaml: 'true|false|null',
  json: 'true|false|null',
};

const sameAs: Readonly<Record<string, string>> = {
  ...{
    bash: 'sh',
    console: 'sh',
    js: 'ts',
    tsx: 'ts',
    javascript: 'ts',
    typescript: 'ts',
    py: 'python',
    yml: 'yaml',
  },
};

const TEXT = String.raw`"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'`;

const comments: Readonly<Record<string, string>> = {
  sh: String.raw`(?<=^|\s)#.*`,
  python: '#.*',
  yaml: String.raw`(?<=^|\s)#.*`,
  ts: String.raw`\/\/.*|\/\*[^]*?\*\/`,
  go: String.raw`\/\/.*`,
  java: String.raw`\/\/.*`,
};

const grammars = new Map(Object.keys(words).map((language) => [language, grammarOf(language)]));

function grammarOf(language: string): RegExp {
  // Strings over several lines: in shells between single quotes, in Go and TypeScript between backticks.
  const long = language === 'sh' ? "|'[^']*'" : language === 'ts' || language === 'go' ? '|`[^`]*`' : '';
  const text = language === 'sh' ? String.raw`"(?:[^"\\]|\\.)*"${long}` : TEXT + long;
  const comment = comments[language];
  return new RegExp(
    [
      comment === undefined ? '(?<comment>(?!))' : `(?<comment>${comment})`,
      `(?<text>${text})`,
      `(?<word>\\b(?:${words[language]})\\b)`,
      // In shell commands, numbers are not marked, because they are parts of addresses and versions.
      language === 'sh' ? '(?<number>(?!))' : String.raw`(?<number>(?<![\w.-])\d[\d_.]*n?\b)`,
    ].join('|'),
    'gm',
  );
}

/** Splits source code for display. It recognizes only strings, comments, numbers and words. */
export function highlight(source: string, language: string): Token[] {
  const grammar = grammars.get(sameAs[language] ?? language);
  if (grammar === undefined) return [{ text: source }];
  const tokens: Token[] = [];
  let end = 0;
  for (const match of source.matchAll(grammar)) {
    if (match.index > end) tokens.push({ text: source.slice(end, match.index) });
    const [kind] = Object.entries(match.groups ?? {}).find(([, found]) => found !== undefined) ?? [];
    tokens.push({ kind: kind as NonNullable<Token['kind']>, text: match[0] });
    end = match.index + match[0].length;
  }
  if (end < source.length) tokens.push({ text: source.slice(end) });
  return tokens;
}
