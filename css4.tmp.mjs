import postcss from 'postcss'; import fs from 'node:fs';
const dir='src/ui/styles'; let extra=0,one=0,two=0,n=0; const list=[];
for(const f of fs.readdirSync(dir)){ postcss.parse(fs.readFileSync(`${dir}/${f}`,'utf8')).walkRules(r=>{ n++; extra+=r.selectors.length-1; const d=r.nodes.filter(n=>n.type==='decl'); if(d.length===1){one++; list.push(`${f}\t${r.parent.type==='atrule'?'@ ':''}${r.selector.replace(/\s+/g,' ')}\t${d[0].prop}: ${d[0].value}`)} if(d.length===2)two++ }) }
console.log({n,extra,one,two}); console.log(list.join('\n'));
