"""Small programs of PyTorch and Triton that must stay silent under exact mode: their results are hashed, to see that they do not change."""
import os,sys,time,hashlib
t=time.time()
import torch
torch.manual_seed(0)
what=sys.argv[1]
d='cuda'
def h(*ts):
    m=hashlib.sha1()
    for x in ts: m.update(x.detach().float().cpu().numpy().tobytes())
    return m.hexdigest()[:12]
def A(n,x): print('ADDR',n,hex(x.data_ptr()),x.numel()*x.element_size(),flush=True)
if what=='five':
    a=torch.arange(10000,device=d,dtype=torch.float32);b=torch.ones(10000,device=d);A('a',a);A('b',b)
    c=a*b;A('mul',c);s=a.sum();A('sum',s);i=torch.randperm(10000,device=d)[:500];A('idx',i);g=a[i];A('gather',g)
    b.index_put_((i,),g);e=torch.nn.functional.embedding_bag(i.view(50,10),a.view(1000,10).contiguous() if False else torch.rand(10000,8,device=d));A('bag',e)
    torch.cuda.synchronize();print('HASH',h(c,s,g,b,e))
elif what=='mm':
    for dt in (torch.float32,torch.float16,torch.bfloat16):
        a=torch.rand(512,512,device=d).to(dt);b=torch.rand(512,512,device=d).to(dt);torch.cuda.synchronize();A('%s a'%dt,a);A('%s b'%dt,b);c=a@b;A('%s c'%dt,c);torch.cuda.synchronize();print('HASH',h(c))
    a=torch.rand(4096,4096,device=d,dtype=torch.bfloat16);b=torch.rand(4096,4096,device=d,dtype=torch.bfloat16);A('bf16 big a',a);A('bf16 big b',b);c=a@b;A('bf16 big c',c);torch.cuda.synchronize();print('HASH',h(c))
elif what=='train':
    torch.use_deterministic_algorithms(True)
    m=torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(256,4,512,batch_first=True,dropout=0.),2).to(d);o=torch.optim.AdamW(m.parameters());x=torch.rand(8,128,256,device=d)
    for i in range(4):
        t1=time.time();o.zero_grad();l=m(x).square().mean();l.backward();o.step();torch.cuda.synchronize();print('STEP %.1f ms'%((time.time()-t1)*1e3),flush=True)
    print('HASH',h(l,*[p for p in m.parameters()]))
elif what=='triton':
    import triton,triton.language as tl
    import triton_k
    x=torch.rand(100000,device=d);y=torch.empty_like(x);A('x',x);A('y',y);triton_k.scale[(98,)](x,y,100000,1024);torch.cuda.synchronize();print('HASH',h(y))
elif what=='graph':
    x=torch.rand(1000,device=d);y=torch.zeros(1000,device=d);s=torch.cuda.Stream();g=torch.cuda.CUDAGraph();s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s): y.copy_(x*2)
    torch.cuda.synchronize()
    with torch.cuda.graph(g): y.copy_(x*3+1)
    A('x',x);A('y',y)
    for i in range(3): g.replay()
    torch.cuda.synchronize();print('HASH',h(y))
print('TOTAL %.1f s'%(time.time()-t))
