import { render } from 'preact';
import { Layout } from './layout.tsx';

render(<Layout />, document.getElementById('inspector')!);
